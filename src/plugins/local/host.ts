import { hostname } from 'node:os';
import pMap from 'p-map';
import type { Clock } from '../../util/clock.ts';
import { FileLane } from '../../util/file-lane.ts';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import type { Handle, Worker } from '../../worker/worker.ts';
import type { Context, Log } from '../contracts/context.ts';
import { Endings } from './ending.ts';
import { type Known, type Place, processesOf, survivorOf } from './living.ts';
import { isAlive, readBootId, type Snapshot, takeSnapshot, parseStat } from './processes.ts';
import { PidNamespaces } from './pid-namespace.ts';
import { WorkRoot } from './root.ts';
import { type Damage, WorkDirectory } from './work-directory.ts';
import type { EndReason, Exit, Marked, ShimClaim } from './worker-files.ts';
import { readFileSync } from 'node:fs';

/** The state of a worker at a moment, read from its directory and the kernel. */
export type LocalState =
  /** Nothing began, and may yet; or nothing is left of it. */
  | { readonly kind: 'unclaimed' }
  /** Nothing began, and nothing will of this attempt. */
  | { readonly kind: 'fenced' }
  | { readonly kind: 'running'; readonly claim: ShimClaim }
  | {
      readonly kind: 'ended';
      readonly claim: ShimClaim;
      /** Undefined: the shim died before it could write it. */
      readonly exit?: Exit;
      readonly endedBy?: EndReason;
    };

/** A worker that began. */
export type BegunState = Exclude<LocalState, { kind: 'unclaimed' | 'fenced' }>;

/** A worker's share of the machine. */
interface Share {
  readonly cpu: number;
  readonly memory: number;
}

/** A worker that may be alive. */
interface Live extends Share {
  readonly worker: Worker;
  /** Its process, with its start as it was told first. */
  readonly claim?: ShimClaim;
}

/** Workers looked at side by side. */
const looksAtOnce = 16;
/** Calls of one connection that may be under way in Node's threads for files. */
const callsAtOnce = 2;
/** How long one call may take, ms. A dead disk is told from a busy one by then, well before a plugin's own time is over. */
const callTimeout = 10_000;

/** One connection of the local backend: the workers of one directory on this machine, shared by all its plugins. */
export class LocalHost {
  readonly lane: FileLane;
  readonly root: WorkRoot;
  readonly directory: WorkDirectory;
  readonly hostname = hostname();
  readonly bootId = readBootId();
  readonly factoryId: string;
  /** Workers that may be alive, each with its process once it is known. */
  readonly live = new Map<number, Live>();
  readonly endings: Endings;
  readonly namespaces: PidNamespaces;
  readonly clock: Clock;
  readonly #log: Log;
  readonly #uptime: Uptime;
  /** The remains of interrupted removals are being removed, or were. */
  #tidied = false;
  /** Damages that were told already. */
  readonly #told = new Set<string>();

  constructor(
    root: string,
    context: Pick<Context, 'clock' | 'factoryId' | 'stateDir' | 'log'>,
    uptime: Uptime = systemUptime,
  ) {
    const { clock, factoryId, stateDir, log } = context;
    this.lane = new FileLane({ clock, name: `local:${root}`, atOnce: callsAtOnce, timeoutMs: callTimeout });
    this.root = new WorkRoot(root, { factoryId, stateDir }, this.lane);
    const tell = (damage: Damage) => {
      this.tellDamage(damage);
    };
    this.directory = new WorkDirectory(root, this.lane, tell);
    this.factoryId = factoryId;
    this.clock = clock;
    this.#log = log;
    this.#uptime = uptime;
    this.endings = new Endings(this, clock, log);
    this.namespaces = new PidNamespaces({ root, lane: this.lane, tell }, clock);
  }

  /** Makes sure that workers can be started in the directory. @throws also if it was lost since it was used first */
  async prepared(): Promise<void> {
    await this.root.prepare();
    await this.directory.prepareScripts();
    if (this.#tidied) return;
    this.#tidied = true;
    // Beside all else: it may be much, and a pilot may have left what cannot be removed.
    this.directory.removeTrash().catch((error: unknown) => {
      const { root } = this.directory;
      this.#log.warn('the remains of interrupted removals cannot be removed', {
        directory: root,
        ...toReason(error),
      });
    });
  }

  taken(): Share {
    let cpu = 0;
    let memory = 0;
    for (const one of this.live.values()) {
      cpu += one.cpu;
      memory += one.memory;
    }
    return { cpu, memory };
  }

  /** Tells once of what stands damaged in the directory. */
  tellDamage({ path, why }: Damage): void {
    const key = `${path}: ${why}`;
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#log.warn('something in the work directory is damaged', {
      code: 'local-directory-damaged',
      path,
      why,
    });
  }

  /** How long a process lives, s, by the kernel's count since boot: nothing that sets a clock changes it. */
  ageOf({ startTicks, bootId }: ShimClaim): number | undefined {
    return bootId === this.bootId ? this.#uptime() - startTicks / ticksPerSecond : undefined;
  }

  /** Takes note of a worker that may live. */
  keep(marked: Pick<Marked, 'worker' | 'cpu' | 'memory'>, claim?: ShimClaim): void {
    const { worker, cpu, memory } = marked;
    const handle = claim === undefined ? worker.handle : toHandle(claim);
    const kept = { ...worker, ...(handle && { handle }) };
    this.live.set(worker.workerId, { cpu, memory, worker: kept, ...(claim && { claim }) });
  }

  /** `snapshot`: shared by all workers of one look, since /proc is read at once and as a whole. */
  async look(worker: Known, snapshot = takeSnapshot()): Promise<LocalState> {
    const { workerId, attempt } = worker;
    const known = this.knownProcess(worker);
    // A process that lives needs no file to say so, whatever became of its directory.
    if (known !== undefined && (await isAlive(known, this.bootId)))
      return { kind: 'running', claim: this.#dated(workerId, known) };
    const { directory, claim: written } = await this.directory.claims(workerId, attempt);
    const claim = written?.by === 'shim' && written.pid !== 0 ? written : (known ?? shimOf(written));
    if (written?.by === 'shim' && (await isAlive(written, this.bootId))) {
      this.#remember(workerId, written);
      return { kind: 'running', claim: written };
    }
    if (claim === undefined && directory) return { kind: written === undefined ? 'unclaimed' : 'fenced' };
    // In this order: a shim that is gone has written its exit file before, if it ever will.
    const exit = directory ? await this.directory.exit(workerId) : undefined;
    // A shim that was killed alone leaves its command behind, and that is the worker: it still runs. So does a worker
    // whose directory was removed under it.
    const survivor = exit === undefined ? await this.survivor(workerId, claim, snapshot) : undefined;
    if (survivor !== undefined) {
      this.#remember(workerId, survivor);
      return { kind: 'running', claim: this.#dated(workerId, survivor) };
    }
    if (claim === undefined || !directory) return { kind: 'unclaimed' };
    if (exit?.noNamespace === true) this.namespaces.forget(exit.at);
    const endedBy = (await this.directory.endedBy(workerId))?.reason;
    return { kind: 'ended', claim, ...(exit && { exit }), ...(endedBy && { endedBy }) };
  }

  /** Looks at all that may live. @throws ThresherError `local-root-lost` rather than to take a lost directory for an empty one */
  async lookAtLiving(): Promise<{ worker: Worker; state: LocalState }[]> {
    await this.root.require();
    const snapshot = takeSnapshot();
    const looks = await pMap([...this.live.values()], ({ worker }) => this.#tryLook(worker, snapshot), {
      concurrency: looksAtOnce,
    });
    return looks.flatMap((look) => (look === undefined ? [] : [look]));
  }

  /** A worker that cannot be looked at is not shown, so that it is looked up by name, and keeps no others from being shown. */
  async #tryLook(
    worker: Worker,
    snapshot: Snapshot,
  ): Promise<{ worker: Worker; state: LocalState } | undefined> {
    try {
      return { worker, state: await this.look(worker, snapshot) };
    } catch (error) {
      if (error instanceof ThresherError) throw error;
      this.tellDamage({ path: this.directory.path(worker.workerId), why: messageOf(error) });
      return undefined;
    }
  }

  /** The process by which a worker lives on though its shim, claim or directory is gone. */
  survivor(
    workerId: number,
    claim: ShimClaim | undefined,
    snapshot = takeSnapshot(),
  ): Promise<ShimClaim | undefined> {
    return survivorOf(workerId, claim, this.#place, snapshot);
  }

  /** The living processes of these workers, by the process of each or its mark alone; workers without any are not in it. */
  processesOf(
    claims: ReadonlyMap<number, ShimClaim | undefined>,
  ): Promise<ReadonlyMap<number, readonly number[]>> {
    return processesOf(claims, this.#place);
  }

  get #place(): Place {
    return { root: this.directory.root, bootId: this.bootId };
  }

  /** The process of a worker by all that is known; @throws where its directory cannot be read and nothing else is known */
  async processOf(worker: Known): Promise<ShimClaim | undefined> {
    const known = this.knownProcess(worker);
    if (known?.bootId === this.bootId) return known;
    const { claim } = await this.directory.claims(worker.workerId, worker.attempt);
    return shimOf(claim);
  }

  /** The process of a worker by what was said of it before. */
  knownProcess({ workerId, handle }: Known): ShimClaim | undefined {
    return claimOfHandle(handle) ?? claimOfHandle(this.live.get(workerId)?.worker.handle);
  }

  #remember(workerId: number, claim: ShimClaim): void {
    const live = this.live.get(workerId);
    if (live !== undefined) this.keep(live, claim);
  }

  /**
   * The start of a process that was found without its claim is reckoned once: the kernel's count is coarser than our clock, so
   * that each look would give another time, and each would be written.
   */
  #dated(workerId: number, claim: ShimClaim): ShimClaim {
    const told = this.live.get(workerId)?.claim;
    if (told?.at !== undefined && told.pid === claim.pid && told.startTicks === claim.startTicks) return told;
    const age = this.ageOf(claim);
    if (claim.at !== undefined || age === undefined) return claim;
    const dated = { ...claim, at: this.clock.now() - age * 1000 };
    this.#remember(workerId, dated);
    return dated;
  }
}

function shimOf(claim: { readonly by: 'fence' } | ShimClaim | undefined): ShimClaim | undefined {
  return claim?.by === 'shim' ? claim : undefined;
}

export function toHandle({ pid, startTicks, bootId }: ShimClaim): Handle {
  return { batchID: String(pid), pid, startTicks, bootId };
}

/** The process that a handle names; undefined for that of an unfinished submission, or an earlier version's. */
function claimOfHandle(handle: Handle | undefined): ShimClaim | undefined {
  if (handle === undefined) return undefined;
  const { pid, startTicks, bootId } = handle;
  if (typeof pid !== 'number' || typeof startTicks !== 'number' || typeof bootId !== 'string')
    return undefined;
  return pid > 1 ? { by: 'shim', pid, startTicks, bootId } : undefined;
}

/**
 * Clock ticks a second in /proc. The kernel counts there in USER_HZ, which is 100 on every machine that Node 24 runs on,
 * whatever the kernel's own HZ. Source: proc_pid_stat(5), time(7).
 */
const ticksPerSecond = 100;

/** How long ago the machine was booted, s. Injected, so that tests can let workers age. */
export type Uptime = () => number;

/**
 * By CLOCK_BOOTTIME, as start times in /proc are: never set by an administrator or NTP, and it goes on while the machine is
 * suspended, as a worker's proxy and its job's deadline do. lxcfs shows a container's own uptime, which is shorter than
 * what start times count from: our own process tells the difference.
 */
export function systemUptime(): number {
  const [shown = ''] = readFileSync('/proc/uptime', 'utf8').split(' ');
  const { startTicks } = parseStat(readFileSync('/proc/self/stat', 'utf8'));
  return Math.max(Number(shown), startTicks / ticksPerSecond + process.uptime());
}

import { hostname } from 'node:os';
import pMap from 'p-map';
import type { Clock } from '../../util/clock.ts';
import type { Observation } from '../../worker/observation.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import { groupMembers, isAlive, readBootId, signalProcess } from './processes.ts';
import { markOf } from './template.ts';
import { type Claim, type EndReason, type Marked, WorkDirectory } from './work-directory.ts';

/** What a worker is at a moment, read from its directory and the kernel. */
export type LocalState =
  /** Nothing began, and may yet. */
  | { readonly kind: 'unclaimed' }
  /** Nothing began, and nothing will of this attempt. */
  | { readonly kind: 'fenced' }
  | { readonly kind: 'running'; readonly claim: Claim & { by: 'shim' } }
  | {
      readonly kind: 'ended';
      readonly claim: Claim & { by: 'shim' };
      /** Undefined: the shim died before it could write it. */
      readonly exit?: { readonly status: number; readonly at: number };
      readonly endedBy?: EndReason;
    };

/** A worker that began. */
export type BegunState = Exclude<LocalState, { kind: 'unclaimed' | 'fenced' }>;

/** What a worker takes of the machine. */
interface Share {
  readonly cpu: number;
  readonly memory: number;
}

/** A worker that may be alive. */
interface Live extends Share {
  readonly worker: Worker;
}

/** How often a killed group is looked at, ms. */
const killPoll = 50;
/** How long after its commands were killed a shim may take to write down how they ended, ms. */
const shimGrace = 1000;
/** Directories read side by side. */
const scansAtOnce = 16;

interface Claimed {
  readonly workerId: number;
  readonly claim: Claim & { by: 'shim' };
}

/** One connection of the local backend: the workers of one directory on this machine, shared by all its plugins. */
export class LocalHost {
  readonly directory: WorkDirectory;
  readonly hostname = hostname();
  readonly bootId = readBootId();
  /** Workers that may be alive. */
  readonly live = new Map<number, Live>();
  readonly #clock: Clock;
  readonly #factoryId: string;
  #prepared: Promise<void> | undefined;

  constructor(root: string, context: Pick<Context, 'clock' | 'factoryId'>) {
    this.directory = new WorkDirectory(root);
    this.#clock = context.clock;
    this.#factoryId = context.factoryId;
  }

  /** Makes the directory, once; a failure is tried again by the next who asks. */
  async prepared(): Promise<void> {
    this.#prepared ??= this.directory.prepareRoot();
    try {
      await this.#prepared;
    } catch (error) {
      this.#prepared = undefined;
      throw error;
    }
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

  /** Everything in the directory that is ours, with its state. One directory that cannot be read spoils no other. */
  async scan(): Promise<{ marked: Marked; state: LocalState }[]> {
    const ids = await this.directory.ids();
    const scanned = await pMap(ids, (id) => this.#scanOne(id), { concurrency: scansAtOnce });
    return scanned.filter((one) => one !== undefined);
  }

  async #scanOne(id: number): Promise<{ marked: Marked; state: LocalState } | undefined> {
    const marked = await this.directory.marked(id);
    if (marked?.factory !== this.#factoryId) return undefined;
    const state = await this.look(id, marked.worker.attempt);
    // Whose end is seen here by a listing is left to the monitor, which has yet to show it. And a submission that went on
    // meanwhile knows better: it may be at a later attempt than what was read here.
    const over = state.kind === 'ended' || state.kind === 'fenced';
    if (!over && !this.live.has(id) && (await this.directory.marked(id)) !== undefined)
      this.live.set(id, marked);
    return { marked, state };
  }

  async look(workerId: number, attempt: number): Promise<LocalState> {
    const claim = await this.directory.shimClaim(workerId, attempt);
    if (claim === undefined) {
      const standing = await this.directory.claim(workerId, attempt);
      return { kind: standing?.by === 'fence' ? 'fenced' : 'unclaimed' };
    }
    // In this order: a shim that is gone has written its exit file before, if it ever will.
    if (await isAlive(claim, this.bootId)) return { kind: 'running', claim };
    const exit = await this.directory.exit(workerId);
    // A shim that was killed alone leaves its command behind, and that is the worker: it still runs.
    if (exit === undefined && this.#members([{ workerId, claim }]).size > 0)
      return { kind: 'running', claim };
    const endedBy = (await this.directory.endedBy(workerId))?.reason;
    return { kind: 'ended', claim, ...(exit && { exit }), ...(endedBy && { endedBy }) };
  }

  /**
   * Ends all processes of these workers: TERM, `grace`, KILL. The shim goes last, so that it can still write down how its
   * command ended. A `reason` is written down before the first signal, and the grace counts from then, over all calls;
   * without one (what a worker that ended by itself left running) it counts from this call.
   * @returns the ids of which nothing lives any more, after at most `patience`. All times in ms.
   */
  async end(
    workers: readonly Pick<Worker, 'workerId' | 'attempt'>[],
    how: { readonly reason?: EndReason; readonly grace: number; readonly patience: number },
    signal: AbortSignal,
  ): Promise<Set<number>> {
    const claimed: Claimed[] = [];
    const gone = new Set<number>();
    for (const { workerId, attempt } of workers) {
      const claim = await this.directory.shimClaim(workerId, attempt);
      if (claim === undefined) gone.add(workerId);
      else claimed.push({ workerId, claim });
    }
    const begun = this.#clock.monotonic();
    const killAt = new Map<number, number>();
    for (const workerId of this.#members(claimed).keys()) {
      if (how.reason !== undefined) await this.directory.markEnded(workerId, how.reason);
      const since = how.reason === undefined ? undefined : (await this.directory.endedBy(workerId))?.at;
      const age = since === undefined ? 0 : Math.max(0, this.#clock.now() - since);
      killAt.set(workerId, begun + how.grace - age);
    }
    const sent = new Set<number>();
    for (;;) {
      const members = this.#members(claimed);
      const now = this.#clock.monotonic();
      for (const { workerId, claim } of claimed) {
        const pids = members.get(workerId) ?? [];
        if (pids.length === 0) gone.add(workerId);
        else this.#signal(pids, claim.pid, now - (killAt.get(workerId) ?? begun + how.grace), sent);
      }
      if (members.size === 0 || now - begun >= how.patience || signal.aborted) return gone;
      await this.#clock.sleep(killPoll, signal);
    }
  }

  /**
   * Makes sure that no attempt up to `worker.attempt` starts any more; @returns the claim of the one that did. The fence
   * needs a directory: one that is not there would be made by a submission that wakes late.
   */
  async fence(worker: Worker): Promise<(Claim & { by: 'shim' }) | undefined> {
    const { workerId, attempt } = worker;
    if ((await this.directory.marked(workerId)) === undefined) {
      await this.prepared();
      await this.directory.prepare({ factory: this.#factoryId, worker, cpu: 0, memory: 0 });
    }
    for (let n = 1; n <= attempt; n++) {
      const claim = await this.directory.fence(workerId, n);
      if (claim.by === 'shim') return claim;
    }
    return undefined;
  }

  /** TERM once to each; after the grace KILL to all but the shim, a second later to all. */
  #signal(pids: readonly number[], shim: number, overdue: number, sent: Set<number>): void {
    if (overdue < 0) {
      for (const pid of pids) if (!sent.has(pid)) signalProcess(pid, 'SIGTERM');
      for (const pid of pids) sent.add(pid);
      return;
    }
    for (const pid of pids) if (pid !== shim || overdue > shimGrace) signalProcess(pid, 'SIGKILL');
  }

  /** Living processes by worker id; workers without any are not in it. */
  #members(workers: readonly Claimed[]): Map<number, number[]> {
    const here = workers.filter(({ claim }) => claim.bootId === this.bootId);
    if (here.length === 0) return new Map();
    const byGroup = groupMembers(
      new Map(
        here.map(({ workerId, claim }) => [
          claim.pid,
          { mark: markOf(this.directory.path(workerId)), leaderStartTicks: claim.startTicks },
        ]),
      ),
    );
    return new Map(
      here.flatMap(({ workerId, claim }) => {
        const pids = byGroup.get(claim.pid);
        return pids === undefined ? [] : [[workerId, pids] as const];
      }),
    );
  }
}

/** What a state means for the worker. A worker that was ended on purpose is not `failed` of itself. */
export function toObservation(workerId: number, state: BegunState, node: string, now: number): Observation {
  const startTime = Math.round(state.claim.at);
  const common = { workerId, node, startTime, observedAt: now };
  if (state.kind === 'running') return { ...common, status: 'running', nativeStatus: 'running' };
  const endTime = Math.round(state.exit?.at ?? now);
  const ended = {
    ...common,
    endTime,
    nativeStatus: 'ended',
    ...(state.exit && { exitCode: state.exit.status }),
  };
  if (state.exit?.status === 0) return { ...ended, status: 'finished' };
  return { ...ended, ...unsuccessful(state.endedBy, state.exit?.status) };
}

function unsuccessful(
  endedBy: EndReason | undefined,
  exit: number | undefined,
): Pick<Observation, 'status' | 'error'> {
  switch (endedBy) {
    case 'killed':
      return { status: 'cancelled', error: { code: 'killed', message: 'ended on request' } };
    case 'walltime':
      return { status: 'failed', error: { code: 'walltime', message: 'ran longer than its maxWalltime' } };
    case undefined:
      return { status: 'failed', error: failure(exit) };
  }
}

function failure(status: number | undefined): { code: string; message: string } {
  if (status === undefined) {
    const message =
      'the process is gone without an exit status: the machine restarted, or it was killed from outside';
    return { code: 'exit-status-lost', message };
  }
  const bySignal = status > 128 ? `, usually signal ${status - 128}` : '';
  const notFound = status === 127 ? ', usually a command that was not found' : '';
  return { code: 'exit-status', message: `ended with exit status ${status}${bySignal}${notFound}` };
}

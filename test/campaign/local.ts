import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { countStarts, Site } from '../support/site.ts';
import { type Arena, type Fault, limits, type Seen } from './arena.ts';
import type { Dice } from './dice.ts';

/** A pilot's program, by which the observer tells it from everything else on this machine. */
export const pilot = `${countStarts} exec sleep $((HARVESTER_WORKER_ID % 4 + 1)).25`;

export const settings = {
  master: { shutdownTimeout: 2, pluginTimeout: 5 },
  submitter: { sleepTime: 0.2 },
  sweeper: { sleepTime: 0.3, keepFinished: 1, keepFailed: 1, keepCancelled: 1, keepMissed: 1 },
  monitor: { missingGrace: 1 },
};

/** Workers of a site on this machine. */
export class StruckProcesses {
  /** Workers whose own end a fault has hidden. */
  readonly hidden = new Set<number>();
  readonly faults: readonly Fault[] = [
    { name: "a worker's shim is killed", weight: 2, strike: (dice) => this.#killOne(dice, 'shim') },
    { name: "a worker's command is killed", weight: 2, strike: (dice) => this.#killOne(dice, 'command') },
    {
      name: 'a worker stands still',
      weight: 1,
      strike: async (dice) => {
        const victim = dice.pick(this.#processes());
        if (victim === undefined) return;
        signal(victim.pid, 'SIGSTOP');
        await sleep(dice.between(100, 1500));
        signal(victim.pid, 'SIGCONT');
      },
    },
    {
      name: 'the directory of an ended worker vanishes',
      weight: 1,
      strike: (dice) => this.#removeOne(dice, false),
    },
    {
      name: 'the directory of a living worker vanishes',
      weight: 2,
      strike: (dice) => this.#removeOne(dice, true),
    },
    { name: "pipes stand for a worker's files", weight: 1, strike: (dice) => this.#plantPipes(dice) },
  ];
  readonly #queueOf = new Map<number, string>();

  readonly #site: Site;

  constructor(site: Site) {
    this.#site = site;
  }

  get #workDir(): string {
    return join(this.#site.stateDir, 'local');
  }

  living(): readonly Seen[] {
    return this.#processes().flatMap(({ workerId, kind }) => {
      const queue = this.#queue(workerId);
      return kind !== 'command' || queue === undefined ? [] : [{ workerId, queue }];
    });
  }

  /** Lets go on what stands still. */
  heal(): void {
    for (const { pid } of this.#processes()) signal(pid, 'SIGCONT');
  }

  #killOne(dice: Dice, kind: 'shim' | 'command'): Promise<void> {
    const victim = dice.pick(this.#processes().filter((one) => one.kind === kind));
    if (victim !== undefined) signal(victim.pid, 'SIGKILL');
    return Promise.resolve();
  }

  #removeOne(dice: Dice, living: boolean): Promise<void> {
    const alive = new Set(this.#processes().map(({ workerId }) => workerId));
    const victim = dice.pick(directoriesIn(this.#workDir).filter((id) => alive.has(id) === living));
    if (victim !== undefined) {
      // Nothing says any more how it ends.
      this.hidden.add(victim);
      rmSync(join(this.#workDir, String(victim)), {
        recursive: true,
        force: true,
        maxRetries: 10,
        retryDelay: 100,
      });
    }
    return Promise.resolve();
  }

  /** As a pilot could, from inside: whoever opens one of them waits for ever. */
  #plantPipes(dice: Dice): Promise<void> {
    const victim = dice.pick(directoriesIn(this.#workDir));
    if (victim === undefined) return Promise.resolve();
    this.hidden.add(victim);
    for (const name of ['worker.json', 'claim.1', 'exit', 'ended-by', 'stdout']) {
      const path = join(this.#workDir, String(victim), name);
      rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
      // The directory may be gone by now.
      spawnSync('mkfifo', [path], { stdio: 'ignore' });
    }
    return Promise.resolve();
  }

  /** Remembered: a directory may be gone while its worker lives. */
  #queue(workerId: number): string | undefined {
    const known = this.#queueOf.get(workerId) ?? this.#site.queueOfDirectory(workerId);
    if (known !== undefined) this.#queueOf.set(workerId, known);
    return known;
  }

  #processes(): WorkerProcess[] {
    return workerProcesses(`THRESHER_WORKER_DIR=${this.#workDir}/`);
  }
}

/** Processes of this machine. */
export class LocalArena implements Arena {
  readonly site = new Site({ queues: {}, settings, pilot });
  readonly environment = {};
  readonly #struck = new StruckProcesses(this.site);
  readonly hidden: ReadonlySet<number> = this.#struck.hidden;
  readonly faults: readonly Fault[] = this.#struck.faults;

  constructor() {
    this.writeQueues({});
  }

  writeQueues(change: Readonly<Record<string, unknown>>): void {
    const queue = (limit: number) => ({ maxWorkers: limit, nQueueLimitWorker: limit, ...change });
    this.site.writeQueues(
      Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, queue(limit)])),
    );
  }

  living(): Promise<readonly Seen[]> {
    return Promise.resolve(this.#struck.living());
  }

  starts(): ReadonlyMap<number, number> {
    return this.site.starts();
  }

  heal(): Promise<void> {
    this.#struck.heal();
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.clean();
  }
}

interface WorkerProcess {
  readonly pid: number;
  readonly workerId: number;
  /** The pilot's own program, or what stands between it and the daemon. */
  readonly kind: 'shim' | 'command';
}

function workerProcesses(mark: string): WorkerProcess[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const environment = readFileSync(`/proc/${entry}/environ`, 'latin1').split('\0');
      const directory = environment.find((line) => line.startsWith(mark));
      const [program] = readFileSync(`/proc/${entry}/cmdline`, 'latin1').split('\0');
      if (directory === undefined || program === '') return [];
      const kind = program === 'sleep' ? 'command' : 'shim';
      return [{ pid: Number(entry), workerId: Number(directory.slice(mark.length)), kind }];
    } catch {
      // It ended meanwhile, or is another user's.
      return [];
    }
  });
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended meanwhile.
  }
}

function directoriesIn(workDir: string): number[] {
  try {
    return readdirSync(workDir).map(Number).filter(Number.isInteger);
  } catch {
    // The daemon has not made it yet.
    return [];
  }
}

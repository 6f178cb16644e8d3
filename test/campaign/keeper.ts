import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';
import type { Arena, Fault } from './arena.ts';
import type { Dice } from './dice.ts';

/** How long a SIGTERM may take, ms: `master.shutdownTimeout` of the arenas, the daemon's last waits, and a slow machine. */
const longestStop = 30_000;

/** Keeps one daemon of an arena running, and kills it. */
export class Keeper {
  kills = 0;
  /** SIGTERMs that did not end their daemon in time. */
  readonly endlessStops: string[] = [];
  readonly #arena: Arena;
  #daemon: RunningDaemon;

  constructor(arena: Arena) {
    this.#arena = arena;
    this.#daemon = this.#begin();
  }

  /** The last of what the running daemon has written, for a report. */
  get output(): string {
    return this.#daemon.output().slice(-4000);
  }

  /** Faults of the daemon itself, the same on every backend. */
  get faults(): Fault[] {
    return [
      { name: 'kill -9', weight: 8, strike: () => this.kill() },
      {
        name: 'kill -9 in the middle of a start',
        weight: 3,
        strike: async (dice) => {
          await this.kill();
          await sleep(dice.between(50, 2500));
          await this.kill();
        },
      },
      {
        name: 'kill -9, and the database is lost',
        weight: 2,
        strike: async () => {
          await this.#end('SIGKILL');
          this.#arena.site.removeDatabase();
          this.#daemon = this.#begin();
        },
      },
      { name: 'SIGTERM', weight: 2, strike: () => this.stop() },
      {
        name: 'the daemon stands still',
        weight: 2,
        strike: async (dice) => {
          this.#daemon.process.kill('SIGSTOP');
          await sleep(dice.between(200, 3000));
          this.#daemon.process.kill('SIGCONT');
        },
      },
      {
        name: 'the queue file changes',
        weight: 2,
        strike: async (dice) => {
          this.#arena.writeQueues({ submitPriority: dice.between(1, 1000) });
          if (await this.started()) this.#daemon.process.kill('SIGHUP');
        },
      },
      { name: 'workers are killed by command', weight: 2, strike: (dice) => this.#killWorkers(dice) },
    ];
  }

  /** Ends the daemon without warning and starts the next one. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
    this.kills++;
    this.#daemon = this.#begin();
  }

  /** Ends the daemon as an operator does and starts the next one. */
  async stop(): Promise<void> {
    // A signal before the handlers stand would end it at once, which says nothing of a stop.
    await this.started();
    await this.#end('SIGTERM');
    this.#daemon = this.#begin();
  }

  async close(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Whether the daemon has come to work. */
  async started(): Promise<boolean> {
    const daemon = this.#daemon;
    return until('the daemon has started', () => daemon.output().includes('started'), 60_000).then(
      () => true,
      () => false,
    );
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#daemon.process.kill(signal);
    const patience = new AbortController();
    const late = sleep(longestStop, 'late', { signal: patience.signal }).catch(() => 'ended');
    if ((await Promise.race([this.#daemon.ended, late])) === 'late') {
      this.endlessStops.push(this.output);
      this.#daemon.process.kill('SIGKILL');
    }
    await this.#daemon.ended;
    patience.abort();
  }

  async #killWorkers(dice: Dice): Promise<void> {
    const living = (await this.#arena.living()) ?? [];
    const victims = new Set(living.filter(() => dice.throw() < 0.5).map(({ workerId }) => String(workerId)));
    this.#arena.commanded?.([...victims].map(Number));
    // It waits for a daemon that may be dead by then: whether it succeeds says nothing.
    if (victims.size > 0)
      this.#arena.site.startWith(['--config', this.#arena.site.config, 'kill', ...victims]);
  }

  #begin(): RunningDaemon {
    return this.#arena.site.start([], { ...this.#arena.environment });
  }
}

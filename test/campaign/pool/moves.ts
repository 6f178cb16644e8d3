import { setTimeout as sleep } from 'node:timers/promises';
import { whereIs } from '../../../src/clients/htcondor/classad.ts';
import type { ScheddKind } from '../../support/htcondor.ts';
import { scheddPid } from '../../support/htcondor.ts';
import type { RunningDaemon } from '../../support/site.ts';
import type { Dice } from '../dice.ts';
import type { JobWish, PoolBed } from './bed.ts';
import type { BookedJob, JobBook } from './book.ts';
import type { Caps } from './caps-kept.ts';
import { type ToolFault, wrapped } from './faulty-tools.ts';

/** One thing that a round changes. */
export interface Move {
  readonly name: string;
  /** How often it is chosen, beside the others. */
  readonly weight: number;
  /** Rounds from one to the next at least: what disturbs everything for seconds must leave time to grow in between. */
  readonly apart?: number;
  make(dice: Dice): Promise<void>;
}

const schedds: readonly ScheddKind[] = ['local', 'remote'];
const faults: readonly ToolFault[] = ['lost', 'refused', 'empty', 'cut', 'late', 'hanging'];
/** Open jobs at once: the machines of the tests work them off in the time that a campaign has. */
const mostOpen = 14;

/** All that moves act on. */
export class Mover {
  daemon: RunningDaemon;
  caps: Caps;
  readonly #bed: PoolBed;
  readonly #book: JobBook;
  readonly #held = new Set<BookedJob>();
  /** Ends of what lasts for a while: a stopped schedd, a fault of a tool. */
  readonly #later: Promise<void>[] = [];

  constructor(bed: PoolBed, book: JobBook, caps: Caps) {
    this.#bed = bed;
    this.#book = book;
    this.caps = caps;
    this.setCaps(caps);
    this.daemon = bed.startDaemon();
  }

  get moves(): readonly Move[] {
    return [
      { name: 'jobs come', weight: 9, make: (dice) => this.#submit(dice) },
      { name: 'an impossible job comes', weight: 0.5, make: (dice) => this.#submitImpossible(dice) },
      { name: 'a job is removed', weight: 1, make: (dice) => this.#remove(dice) },
      { name: 'an idle job is held', weight: 1.5, make: (dice) => this.#hold(dice) },
      { name: 'held jobs are released', weight: 1, make: () => this.release() },
      { name: 'caps change', weight: 2, apart: 6, make: (dice) => this.#changeCaps(dice) },
      { name: 'a queue is drained', weight: 0.7, apart: 25, make: (dice) => this.#drainQueue(dice) },
      { name: 'queues are resumed', weight: 1.5, make: () => this.resume() },
      { name: 'a worker is drained', weight: 1.2, make: (dice) => this.#drainWorker(dice) },
      { name: 'the daemon is killed', weight: 1, apart: 20, make: () => this.restart() },
      { name: 'a schedd stands still', weight: 0.4, apart: 40, make: (dice) => this.#stopSchedd(dice) },
      { name: 'the collector is killed', weight: 0.2, apart: 200, make: () => this.#killCollector() },
      { name: 'a tool fails', weight: 1.5, apart: 10, make: (dice) => this.#failTool(dice) },
      { name: 'nothing', weight: 2, make: () => Promise.resolve() },
    ];
  }

  setCaps(caps: Caps): void {
    this.caps = caps;
    this.#bed.writeCaps(caps);
  }

  async resume(): Promise<void> {
    for (const queue of Object.keys(this.caps)) await this.#bed.site.run('resume', queue);
  }

  async release(): Promise<void> {
    const jobs = [...this.#held].filter(({ removed }) => !removed);
    for (const schedd of schedds) {
      const clusters = jobs.filter((job) => job.schedd === schedd).map(({ cluster }) => cluster);
      if (clusters.length === 0) continue;
      const where = clusters.map((cluster) => whereIs('ClusterId', cluster)).join(' || ');
      await this.#bed.client(schedd).act('release', where, 'a test', new AbortController().signal);
      for (const cluster of clusters) this.#forget(cluster);
    }
  }

  #forget(cluster: number): void {
    for (const job of this.#held) if (job.cluster === cluster) this.#held.delete(job);
  }

  /** Ends the daemon without warning, and all that lasts. */
  async end(): Promise<void> {
    this.daemon.process.kill('SIGKILL');
    await Promise.all([this.daemon.ended, ...this.#later]);
    this.#bed.tools.heal();
  }

  async restart(): Promise<void> {
    this.daemon.process.kill('SIGKILL');
    await this.daemon.ended;
    this.daemon = this.#bed.startDaemon();
  }

  /** Takes back what lasts, and removes what can never run. */
  async heal(): Promise<void> {
    await Promise.all(this.#later);
    this.#bed.tools.heal();
    await this.resume();
    await this.release();
    for (const job of this.#book.jobs.values()) if (!job.servable && !job.removed) await this.#removeJob(job);
  }

  async #submit(dice: Dice): Promise<void> {
    const ended = await this.#book.ended();
    const open = schedds.flatMap((schedd) => this.#book.open(schedd, ended)).length;
    const sizes = [
      { cpus: 1, memory: 128 },
      { cpus: 1, memory: 900 },
      { cpus: 2, memory: 512 },
      { cpus: 4, memory: 2000 },
    ];
    for (let left = Math.min(dice.between(1, 3), mostOpen - open); left > 0; left--) {
      const wish: JobWish = {
        ...(dice.pick(sizes) ?? { cpus: 1, memory: 128 }),
        seconds: dice.between(1, 5),
      };
      await this.#book.submit(dice.pick(schedds) ?? 'local', wish, true);
    }
  }

  async #submitImpossible(dice: Dice): Promise<void> {
    const wish = { cpus: 64, memory: 128, seconds: 1 };
    await this.#book.submit(dice.pick(schedds) ?? 'local', wish, false);
  }

  async #remove(dice: Dice): Promise<void> {
    const job = await this.#some(dice);
    if (job !== undefined) await this.#removeJob(job);
  }

  async #removeJob(job: BookedJob): Promise<void> {
    // A lost answer leaves open whether it is removed: it counts for nothing from here on.
    job.touched = true;
    job.removed = true;
    const where = whereIs('ClusterId', job.cluster);
    await this.#bed.client(job.schedd).act('remove', where, 'a test', new AbortController().signal);
  }

  async #hold(dice: Dice): Promise<void> {
    const job = await this.#some(dice);
    if (job === undefined) return;
    const where = `${whereIs('ClusterId', job.cluster)} && JobStatus == 1`;
    const { touched } = job;
    // Before the order: its answer may be lost.
    job.touched = true;
    this.#held.add(job);
    const { signal } = new AbortController();
    const done = await this.#bed.client(job.schedd).act('hold', where, 'a test', signal);
    if (done.succeeded > 0) return;
    job.touched = touched;
    if (!touched) this.#held.delete(job);
  }

  async #some(dice: Dice): Promise<BookedJob | undefined> {
    const ended = await this.#book.ended();
    return dice.pick(this.#book.open(dice.pick(schedds) ?? 'local', ended));
  }

  #changeCaps(dice: Dice): Promise<void> {
    const caps = Object.entries(this.caps).map(([queue, shapes]) => [
      queue,
      Object.fromEntries(
        Object.keys(shapes).map((shape) => [shape, dice.between(0, shape === 'small' ? 4 : 2)]),
      ),
    ]);
    // Only a changed file is read again.
    if (JSON.stringify(Object.fromEntries(caps)) !== JSON.stringify(this.caps))
      this.setCaps(Object.fromEntries(caps) as Caps);
    return Promise.resolve();
  }

  async #drainQueue(dice: Dice): Promise<void> {
    const queue = dice.pick(Object.keys(this.caps));
    if (queue !== undefined) await this.#bed.site.run('drain', queue);
  }

  /** As an administrator of the pool may: busy or not. */
  async #drainWorker(dice: Dice): Promise<void> {
    const slot = dice.pick((await this.#bed.slots().catch(() => [])).filter(({ dynamic }) => !dynamic));
    if (slot !== undefined)
      await this.#bed.condor('condor_drain', '-graceful', '-exit-on-completion', slot.name).catch(() => '');
  }

  #stopSchedd(dice: Dice): Promise<void> {
    const pid = scheddPid(this.#bed.pool, dice.pick(schedds) ?? 'local');
    process.kill(pid, 'SIGSTOP');
    this.#until(dice.between(300, 2000), () => process.kill(pid, 'SIGCONT'));
    return Promise.resolve();
  }

  #killCollector(): Promise<void> {
    process.kill(this.#bed.pidOf('condor_collector'), 'SIGKILL');
    return Promise.resolve();
  }

  #failTool(dice: Dice): Promise<void> {
    this.#bed.tools.set(dice.pick(wrapped) ?? 'condor_q', dice.pick(faults) ?? 'lost');
    this.#until(dice.between(300, 1500), () => {
      this.#bed.tools.heal();
    });
    return Promise.resolve();
  }

  #until(ms: number, end: () => void): void {
    this.#later.push(sleep(ms).then(end));
  }
}

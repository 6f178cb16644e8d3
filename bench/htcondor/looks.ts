/**
 * A daemon with many idle jobs, whose monitor looks when it is told to; between its looks a bare `condor_q` asks the
 * same. `node looks.ts JSON`
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { whereIs } from '../../src/clients/htcondor/classad.ts';
import { followed } from '../../src/plugins/htcondor/look-up.ts';
import { marks } from '../../src/plugins/htcondor/marks.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { report, startDaemon } from '../core/site.ts';
import { Rows } from '../shared/rows.ts';
import type { Programs } from './daemon.ts';
import { onProgram } from './programs.ts';

export interface LooksOptions {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly factory: string;
  readonly schedd: string;
  readonly pool: string;
  readonly workers: number;
  readonly rounds: number;
  /** ms: by it the monitor's pause is known. */
  readonly pause: number;
}

export interface Looks {
  /** One of each per round, ms. */
  readonly looks: readonly number[];
  readonly bareToFile: readonly number[];
  readonly bareToNothing: readonly number[];
  /** Processor time of the daemon itself during each of its looks, ms. */
  readonly cpu: readonly number[];
  /** All that it started during its looks. */
  readonly programs: Programs;
  readonly complaints: readonly string[];
}

/** The real time, but for one pause, which ends when it is said. */
class Gate implements Clock {
  readonly now = () => systemClock.now();
  readonly monotonic = () => systemClock.monotonic();
  /** Until then the pause is short. */
  held = false;
  readonly #pause: number;
  #release: () => void = () => undefined;
  #began: () => void = () => undefined;

  constructor(pause: number) {
    this.#pause = pause;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    // It is counted from the end of the look before.
    if (Math.abs(ms - this.#pause) > 100) {
      await systemClock.sleep(ms, signal);
      return;
    }
    if (!this.held) {
      await systemClock.sleep(500, signal);
      return;
    }
    await new Promise<void>((resolve) => {
      this.#release = resolve;
      this.#began();
    });
  }

  /** Waits until the monitor pauses. */
  async paused(): Promise<void> {
    const began = new Promise<void>((resolve) => {
      this.#began = resolve;
    });
    const late = new AbortController();
    const tooLate = systemClock.sleep(120_000, late.signal).then(() => {
      if (!late.signal.aborted) throw new Error(`the monitor never paused for ${this.#pause} ms`);
    });
    await Promise.race([began, tooLate]);
    late.abort();
  }

  /** From the end of the pause to the begin of the next one. */
  async look(): Promise<void> {
    const next = this.paused();
    this.#release();
    await next;
  }
}

const options = JSON.parse(process.argv[2] ?? '') as LooksOptions;
const { directory, environment, factory, schedd, pool, workers, rounds, pause } = options;
Object.assign(process.env, environment);
const programs: Record<string, number> = {};
let counts = false;
onProgram((name) => {
  if (counts) programs[name] = (programs[name] ?? 0) + 1;
});
const gate = new Gate(pause);
const { complaints } = await startDaemon(directory, gate);
const rows = new Rows(join(directory, 'state', 'thresher.db'));
const allIdle = () => rows.count(`native_status = 'idle'`) === workers;
await rows.until(`${workers} jobs are idle`, allIdle, 180_000);
const paused = gate.paused();
gate.held = true;
await paused;
const where = ['-name', schedd, '-pool', pool];
const constraint = `${whereIs(marks.factory, factory)} && (true)`;
const what = ['-allusers', '-json', '-attributes', followed.join(','), '-constraint', constraint];

const result = {
  looks: [] as number[],
  bareToFile: [] as number[],
  bareToNothing: [] as number[],
  cpu: [] as number[],
};
// The first round warms up all of them; it is not counted.
for (let round = 0; round <= rounds; round++) {
  const file = await bare(join(directory, 'queue.json'));
  counts = round > 0;
  const cpu = process.cpuUsage();
  const begin = performance.now();
  await gate.look();
  const ms = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  // Programs are told of in a turn of their own.
  await systemClock.sleep(50);
  counts = false;
  const nothing = await bare('/dev/null');
  if (round === 0) continue;
  result.looks.push(ms);
  result.cpu.push((user + system) / 1000);
  result.bareToFile.push(file);
  result.bareToNothing.push(nothing);
}
if (!allIdle()) throw new Error('after the looks not all jobs are idle any more');
rows.close();
await report({ ...result, programs, complaints } satisfies Looks);

/** @returns ms until it has ended. */
async function bare(output: string): Promise<number> {
  const to = openSync(output, 'w');
  const begin = performance.now();
  const child = spawn('condor_q', [...where, ...what], { stdio: ['ignore', to, 'inherit'] });
  const [status] = (await once(child, 'exit')) as [number | null];
  closeSync(to);
  if (status !== 0) throw new Error(`the bare condor_q ended with ${status ?? 'a signal'}`);
  return performance.now() - begin;
}

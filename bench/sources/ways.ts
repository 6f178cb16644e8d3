import type { Daemon } from '../../src/daemon/daemon.ts';
import { sleep, until } from '../core/site.ts';
import { asker } from './asker.ts';

/** ms of each request, in order. */
export interface Ways {
  /** From asking to when the backend's acceptance is in the database. */
  readonly asked: readonly number[];
  /** The part of these within the backend's own call. */
  readonly bare: readonly number[];
  readonly complaints: readonly string[];
}

/** Asks for one worker after the other. */
export async function timeTheWays(daemon: Daemon, count: number): Promise<Pick<Ways, 'asked' | 'bare'>> {
  const asked: number[] = [];
  const bare: number[] = [];
  let accepted = 0;
  let called = 0;
  daemon.events.on('workersChanged', ({ workers }) => {
    if (workers.some(({ from, to }) => from === undefined && to === 'pending')) called = performance.now();
    if (workers.some(({ from }) => from === 'pending')) accepted++;
  });
  daemon.events.on('submissionAnswered', () => {
    bare.push(performance.now() - called);
  });
  for (let index = 0; index < count; index++) {
    const before = accepted;
    const start = performance.now();
    let end = 0;
    const unsubscribe = daemon.events.on('workersChanged', () => (end = performance.now()));
    asker.ask('BENCH', [{ origin: { uid: 'way', index } }]);
    await until('the backend has it', () => accepted > before, 30_000);
    asked.push(end - start);
    if (typeof unsubscribe === 'function') unsubscribe();
    await sleep(20);
  }
  return { asked, bare };
}

import type { Clock } from './clock.ts';

/** Whether work came to its end in this time, ms; it goes on otherwise. */
export async function within(clock: Pick<Clock, 'sleep'>, ms: number, work: Promise<void>): Promise<boolean> {
  const done = new AbortController();
  const late = clock.sleep(ms, done.signal).then(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    done.abort();
  }
}

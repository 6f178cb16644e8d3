import type { Clock } from './clock.ts';

/** Whether work came to its end in this time, ms, and before `signal` aborted; it goes on otherwise. */
export async function within(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  work: Promise<void>,
  signal?: AbortSignal,
): Promise<boolean> {
  const done = new AbortController();
  const over = signal === undefined ? done.signal : AbortSignal.any([done.signal, signal]);
  const late = clock.sleep(ms, over).then(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    done.abort();
  }
}

import { ThresherError } from '../worker/errors.ts';
import type { Clock } from './clock.ts';

export interface Deadline {
  readonly clock: Clock;
  /** Name of the call, for the message: "submit of queue CERN_PROD". */
  readonly what: string;
  readonly timeoutMs: number;
  /** Time that a call has to report its results so far, after its signal aborted at the deadline, ms. Default 0. */
  readonly graceMs?: number;
  readonly signal: AbortSignal;
}

/**
 * Calls `call` with a signal that aborts at the deadline or with `signal`, and comes back then even if the call does
 * not: a plugin that hangs for ever costs its caller `timeoutMs` and no more.
 * @throws ThresherError `plugin-timeout` at the deadline, `shutting-down` when `signal` aborts, else what the call throws.
 */
export async function withDeadline<T>(
  deadline: Deadline,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock, what, timeoutMs, graceMs = 0, signal } = deadline;
  const abort = new AbortController();
  const finished = new AbortController();
  const late = clock.sleep(timeoutMs, AbortSignal.any([signal, finished.signal])).then(async () => {
    if (finished.signal.aborted) return;
    abort.abort(
      signal.aborted
        ? new ThresherError('shutting-down', `${what} was given up because the daemon stops`)
        : new ThresherError('plugin-timeout', `${what} did not come back within ${timeoutMs / 1000} s`),
    );
    if (graceMs > 0 && !signal.aborted)
      await clock.sleep(graceMs, AbortSignal.any([signal, finished.signal]));
    throw abort.signal.reason;
  });
  try {
    // `late` rejects before it ever resolves while the call is under way.
    return (await Promise.race([call(abort.signal), late])) as T;
  } catch (error) {
    // A call that ends by its signal has an error of its own; why it was ended says more.
    throw abort.signal.aborted ? abort.signal.reason : error;
  } finally {
    finished.abort();
    // The loser of the race rejects later, and no caller waits for it.
    late.catch(() => undefined);
  }
}

/** Waits for work that goes on for others when this caller gives up. @throws what the work throws, and what `signal` says once it aborts */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const given = Promise.withResolvers<never>();
  const abort = () => {
    given.reject(signal.reason);
  };
  signal.addEventListener('abort', abort);
  try {
    if (signal.aborted) abort();
    return await Promise.race([work, given.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
    work.catch(() => undefined);
  }
}

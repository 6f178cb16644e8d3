import { ThresherError } from '../worker/errors.ts';
import type { Clock } from './clock.ts';

export interface Deadline {
  readonly clock: Clock;
  /** What is called, for the message: "submit of queue CERN_PROD". */
  readonly what: string;
  readonly timeoutMs: number;
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
  const { clock, what, timeoutMs, signal } = deadline;
  const abort = new AbortController();
  const finished = new AbortController();
  const timedOut = clock.sleep(timeoutMs, AbortSignal.any([signal, finished.signal])).then((): never => {
    const error = signal.aborted
      ? new ThresherError('shutting-down', `${what} was given up because the daemon stops`)
      : new ThresherError('plugin-timeout', `${what} did not come back within ${timeoutMs / 1000} s`);
    abort.abort(error);
    throw error;
  });
  try {
    return await Promise.race([call(abort.signal), timedOut]);
  } finally {
    finished.abort();
    // Lost races end in a rejection that nobody waits for.
    timedOut.catch(() => undefined);
  }
}

/** The time source of every part that needs one, so that tests can hold time still. All in ms. */
export interface Clock {
  /** Wall clock, ms UTC: for what is stored and shown. It may jump. */
  now(): number;
  /** Never jumps back: for measuring durations. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts: who sleeps looks at the signal afterwards. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Longest sleep of a Node timer, ms: a longer one would end at once. */
const longestTimer = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    for (let left = ms; left > 0 && signal?.aborted !== true; left -= longestTimer) {
      await sleepOnce(Math.min(left, longestTimer), signal);
    }
  },
};

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}

/** Lets timers, signals and other queues have their turn: SQLite answers without ever leaving the current one. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Whether a date of JavaScript can be of it, ms UTC. */
export function isTime(ms: number): boolean {
  return !Number.isNaN(new Date(ms).getTime());
}

/** ISO 8601 in UTC with ms, as every time is shown; a number that is no time, as it is. */
export function isoTime(ms: number): string {
  return isTime(ms) ? new Date(ms).toISOString() : `${ms} ms`;
}

/** RFC 3339 in UTC with seconds, as Kubernetes writes times. @param ms UTC */
export function isoSeconds(ms: number): string {
  return isoTime(ms).replace(/\.\d+Z$/, 'Z');
}

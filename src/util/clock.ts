import { hour } from './duration.ts';

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

/** To be awaited between the parts of a long piece of work: others have their turn after each `ms` of it. */
export function givingWay(clock: Pick<Clock, 'monotonic'>, ms = 20): () => Promise<void> {
  let begun = clock.monotonic();
  return async () => {
    if (clock.monotonic() - begun < ms) return;
    await nextTurn();
    begun = clock.monotonic();
  };
}

/** The same for work of a known size, to be awaited after each part: others have their turn after each `most` of it, in the unit of the sizes. */
export function givingWayAfter(most: number): (size: number) => Promise<void> {
  let done = 0;
  return async (size) => {
    done += size;
    if (done < most) return;
    done = 0;
    await nextTurn();
  };
}

/** Takes all steps of a long piece of work. Others have their turn between two. */
export async function inTurns<Result>(steps: Generator<undefined, Result, undefined>): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await nextTurn();
  }
}

/**
 * What is made of each, one after the other, with `giveWay` of `givingWay` before each: secrets are looked for in a text for up to a millisecond,
 * and users write such texts for hundreds of workers at once. What the work rests on may change meanwhile.
 */
export async function eachGivingWay<One, Made>(
  giveWay: () => Promise<void>,
  all: Iterable<One>,
  make: (one: One) => Made,
): Promise<Made[]> {
  const made: Made[] = [];
  for (const one of all) {
    await giveWay();
    made.push(make(one));
  }
  return made;
}

/**
 * As `givingWay`, for the work of many that begin at one moment: each piece may be short, and all of them together long. They go on one after
 * the other, and others have their turn after each `ms` of all of it.
 */
export function givingWayTogether(clock: Pick<Clock, 'monotonic'>, ms = 20): () => Promise<void> {
  const giveWay = givingWay(clock, ms);
  let last = Promise.resolve();
  return () => {
    last = last.then(giveWay);
    return last;
  };
}

/**
 * How long ago a time is that a clock wrote which may have been wrong then, or is now: what it was at the first look, and what has passed
 * since by the monotonic clock, at most. So no wait is over early because a clock was behind, and is right by now.
 */
export class Age {
  #time: number | undefined;
  /** Monotonic ms of the time, at the earliest. */
  #from = 0;

  /** The time is of just now, whatever the clocks say. @param time ms UTC */
  begin(time: number, monotonic: number): void {
    this.#time = time;
    this.#from = monotonic;
  }

  /**
   * Another time than the last one begins anew.
   * @param time ms UTC, as `now`
   * @returns ms; negative for a time to come
   */
  of(time: number, now: number, monotonic: number): number {
    const byWall = now - time;
    if (this.#time !== time) this.begin(time, monotonic - Math.max(0, byWall));
    return Math.min(byWall, monotonic - this.#from);
  }
}

/** A step of the wall clock by less than this is no jump, ms: so clocks are set right, and two readings are never of one moment. */
const smallStep = 60_000;
/** How long the wall clock stays ahead until it is believed, ms: one that was behind at the start of the machine, and was set right since. */
const believedAfter = hour;

/**
 * The wall clock, for what is removed for good because of its age: it may have jumped ahead, and be set right again soon. So it is not ahead of
 * what it was at an earlier look and what has passed since by the monotonic clock, until it has stayed ahead for an hour.
 */
export class BelievedClock {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly #log: { warn(message: string, facts: { readonly ahead: number }): void };
  /** Wall clock less monotonic clock, ms, as far as it is believed. */
  #offset: number;
  /** The least that the wall clock was ahead of that since it jumped, ms, and since when, monotonic ms. */
  #jump: { readonly least: number; readonly since: number } | undefined;

  /** Looks at the clock for the first time. */
  constructor(
    clock: Pick<Clock, 'now' | 'monotonic'>,
    log: { warn(message: string, facts: { readonly ahead: number }): void },
  ) {
    this.#clock = clock;
    this.#log = log;
    this.#offset = clock.now() - clock.monotonic();
  }

  /** ms UTC */
  now(): number {
    const monotonic = this.#clock.monotonic();
    const ahead = this.#clock.now() - monotonic - this.#offset;
    if (ahead < smallStep) this.#believe(ahead);
    else {
      if (this.#jump === undefined) {
        const message =
          'the clock has jumped ahead: until it has stayed so for an hour, nothing is removed because of that';
        this.#log.warn(message, { ahead: Math.round(ahead / 1000) });
      }
      const { least, since } = this.#jump ?? { least: ahead, since: monotonic };
      this.#jump = { least: Math.min(least, ahead), since };
      if (monotonic - since >= believedAfter) {
        const facts = { ahead: Math.round(this.#jump.least / 1000) };
        this.#log.warn('the clock that jumped ahead has stayed so for an hour, and is believed now', facts);
        this.#believe(this.#jump.least);
      }
    }
    return monotonic + this.#offset;
  }

  #believe(ahead: number): void {
    this.#offset += ahead;
    this.#jump = undefined;
  }
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

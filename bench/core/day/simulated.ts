import { type Marked, type Named, type Seen, type State, states } from './protocol.ts';
import { connectionOf, oneFailsOf, queueName, queues, runs, waits, wantedBy, type Replay } from './replay.ts';

/** Between two looks at the clock, ms. */
export const tick = 50;

/** A worker that is there: it lives, or has ended and was not removed. */
interface Present {
  readonly marked: Marked;
  state: State;
  startTime: number | undefined;
  endTime: number | undefined;
}

/** What became of a worker id over the whole replay. */
export interface Record {
  readonly workerId: number;
  /** How many workers were started for it, under whichever name. */
  readonly starts: number;
  readonly state: State;
  readonly isThere: boolean;
}

/** Counts of now. */
export interface Counts {
  /** Workers that the replay has wanted so far. */
  readonly due: number;
  readonly started: number;
  readonly alive: number;
  /** Attempts that came after their worker was sought, and started nothing. */
  readonly fenced: number;
  /** Submissions of a worker that was there. */
  readonly repeated: number;
}

/** The workers of a simulated backend, of all queues. Times are real ms UTC. */
export class SimulatedWorkers {
  /** Hears of each worker whose state changed, with its connection. */
  onChange: (connection: string, seen: Seen) => void = () => undefined;
  readonly #replay: Replay;
  readonly #present = new Map<string, Present>();
  /** By worker id: the last state, whether it is there, and how often it was started, in one number. */
  readonly #records = new Map<number, number>();
  readonly #fences = new Map<string, number>();
  /** What is to happen, by ticks. */
  readonly #coming = new Map<number, { readonly present: Present; readonly state: State }[]>();
  readonly #connections = new Map<string, string>();
  readonly #started = new Map<string, number>();
  /** When each worker of a queue came to be wanted, of those that were not started yet. */
  readonly #waiting = new Map<string, number[]>();
  readonly #wanted = new Map<string, number>();
  /** ms between a worker being wanted and being started. */
  readonly #lags: number[] = [];
  #begun: number | undefined;
  #lastTick: number | undefined;
  #alive = 0;
  #fenced = 0;
  #repeated = 0;

  constructor(replay: Replay) {
    this.#replay = replay;
    for (let index = 0; index < queues; index++) this.#connections.set(queueName(index), connectionOf(index));
  }

  get counts(): Counts {
    const sum = (values: Iterable<number>) => [...values].reduce((all, one) => all + one, 0);
    return {
      due: sum(this.#wanted.values()),
      started: sum(this.#started.values()),
      alive: this.#alive,
      fenced: this.#fenced,
      repeated: this.#repeated,
    };
  }

  get lags(): readonly number[] {
    return this.#lags;
  }

  /** The day begins. */
  begin(now: number): void {
    this.#begun = now;
  }

  /** Lets happen what is due by now. */
  advance(now: number): void {
    const { speed, hours } = this.#replay;
    if (this.#begun !== undefined) {
      const at = Math.min((now - this.#begun) * speed, hours * 3_600_000);
      for (let index = 0; index < queues; index++) this.#want(queueName(index), wantedBy(index, at), now);
    }
    const last = Math.floor(now / tick);
    for (let one = this.#lastTick ?? last; one <= last; one++) {
      const events = this.#coming.get(one) ?? [];
      this.#coming.delete(one);
      for (const { present, state } of events) this.#change(present, state, now);
    }
    this.#lastTick = last + 1;
  }

  roomIn(queue: string): number {
    return Math.max(0, (this.#wanted.get(queue) ?? 0) - (this.#started.get(queue) ?? 0));
  }

  /** @returns whether it is there now. A worker of the same name counts as the same. */
  start(marked: Marked, now: number): boolean {
    const { workerId, name, queue, attempt } = marked;
    if (this.#present.has(name)) {
      this.#repeated++;
      return true;
    }
    if ((this.#fences.get(name) ?? 0) >= attempt) {
      this.#fenced++;
      return false;
    }
    const present: Present = { marked, state: 'submitted', startTime: undefined, endTime: undefined };
    this.#present.set(name, present);
    this.#alive++;
    this.#started.set(queue, (this.#started.get(queue) ?? 0) + 1);
    this.#note(workerId, { state: 'submitted', isThere: true, starts: this.#record(workerId).starts + 1 });
    const wantedAt = this.#waiting.get(queue)?.shift();
    this.#lags.push(wantedAt === undefined ? 0 : now - wantedAt);
    const running = now + this.#long(waits);
    this.#plan(running, present, 'running');
    this.#plan(running + this.#long(runs), present, Math.random() * oneFailsOf < 1 ? 'failed' : 'finished');
    return true;
  }

  /** Keeps late attempts from starting them. @returns those that are there */
  find(workers: readonly Named[]): number[] {
    for (const { name, attempt } of workers)
      this.#fences.set(name, Math.max(attempt, this.#fences.get(name) ?? 0));
    return workers.filter(({ name }) => this.#present.has(name)).map(({ workerId }) => workerId);
  }

  check(workers: readonly Named[]): Seen[] {
    return workers.flatMap(({ name }) => {
      const present = this.#present.get(name);
      return present === undefined ? [] : [seenOf(present)];
    });
  }

  kill(workers: readonly Named[], now: number): void {
    for (const { name } of workers) {
      const present = this.#present.get(name);
      if (present !== undefined) this.#change(present, 'cancelled', now);
    }
  }

  /** Removes what is left of these, and ends those that live. */
  remove(names: readonly string[], now: number): void {
    for (const name of names) {
      const present = this.#present.get(name);
      if (present === undefined) continue;
      this.#change(present, 'cancelled', now);
      this.#present.delete(name);
      const { workerId } = present.marked;
      this.#note(workerId, { ...this.#record(workerId), isThere: false });
    }
  }

  /** Everything that is on a connection. */
  on(connection: string): { readonly marked: Marked; readonly seen: Seen }[] {
    const found: { marked: Marked; seen: Seen }[] = [];
    for (const present of this.#present.values())
      if (this.#connections.get(present.marked.queue) === connection)
        found.push({ marked: present.marked, seen: seenOf(present) });
    return found;
  }

  /** Every worker id that was ever started. */
  records(): Record[] {
    return [...this.#records.keys()].map((workerId) => ({ workerId, ...this.#record(workerId) }));
  }

  #want(queue: string, wanted: number, now: number): void {
    const before = this.#wanted.get(queue) ?? 0;
    const waiting = this.#waiting.get(queue) ?? [];
    for (let one = before; one < wanted; one++) waiting.push(now);
    this.#waiting.set(queue, waiting);
    this.#wanted.set(queue, wanted);
  }

  #long({ least, most }: { readonly least: number; readonly most: number }): number {
    return (least + Math.random() * (most - least)) / this.#replay.speed;
  }

  #plan(at: number, present: Present, state: State): void {
    // Never the tick that has passed.
    const slot = Math.floor(at / tick) + 1;
    const events = this.#coming.get(slot);
    if (events === undefined) this.#coming.set(slot, [{ present, state }]);
    else events.push({ present, state });
  }

  #change(present: Present, state: State, now: number): void {
    if (hasEnded(present.state)) return;
    present.state = state;
    if (state === 'running') present.startTime = now;
    if (hasEnded(state)) {
      present.endTime = now;
      this.#alive--;
    }
    const { workerId, queue } = present.marked;
    this.#note(workerId, { ...this.#record(workerId), state });
    this.onChange(this.#connections.get(queue) ?? '', seenOf(present));
  }

  #record(workerId: number): Omit<Record, 'workerId'> {
    const packed = this.#records.get(workerId) ?? 0;
    return {
      starts: packed >> 4,
      isThere: (packed & 8) !== 0,
      state: states[packed & 7] ?? 'submitted',
    };
  }

  #note(workerId: number, { starts, isThere, state }: Omit<Record, 'workerId'>): void {
    this.#records.set(workerId, (starts << 4) | (isThere ? 8 : 0) | states.indexOf(state));
  }
}

export function hasEnded(state: State): boolean {
  return state !== 'submitted' && state !== 'running';
}

function seenOf({ marked, state, startTime, endTime }: Present): Seen {
  return [marked.workerId, state, startTime, endTime];
}

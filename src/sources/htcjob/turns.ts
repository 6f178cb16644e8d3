import type { Request } from '../../plugins/contracts/index.ts';
import type { Tracked } from './tracked.ts';

/** Requests that one queue is asked for at a time, and that are in memory: twice what a pass looks at, so that the next ones are there when it has submitted. */
const mostAsked = 20_000;
/** Requests that a pass looks at, if the queue is asked for more. */
const perPass = mostAsked / 2;
/** Jobs of one namespace that are served before those of the next one, at most: each namespace has its turn in every pass. */
const mostTogether = 500;
/** Requests of a HTCJob are made so many at a time, or as many as it has, where more are to come: each time its spec and its Secrets are read. */
const fewestMade = 100;
/** No job of a HTCJob with such a reason gets a worker: they are all alike, and one of them stands for the others. */
const refusals: ReadonlySet<string> = new Set([
  ...['payload-unsupported', 'payload-wrong', 'payload-too-large', 'request-refused'],
]);

/** The HTCJobs of one namespace, of which the oldest has its turn. */
interface Line {
  readonly jobs: readonly Tracked[];
  at: number;
}

/**
 * Says which HTCJobs may ask a queue for workers, and for how many: one may want 10,000, and hundreds of them may wait for weeks.
 * Namespaces take turns, so that none of them fills a pass whatever its jobs wait for, and the one with the fewest living jobs begins. In
 * a namespace the oldest HTCJob goes first.
 */
export class Turns {
  /** By queue: how many more may be asked for. */
  readonly #room = new Map<string, number>();

  /**
   * Shares the requests of a queue out anew.
   * @param asking the HTCJobs that ask for workers of the queue
   * @param living how many jobs live in the queue, by namespace
   * @param changed is told of each that may ask for more or fewer
   * @returns the requests that are made, in the order of service
   */
  share(
    queue: string,
    asking: readonly Tracked[],
    living: ReadonlyMap<string, number>,
    changed: (tracked: Tracked) => void,
  ): Request[] {
    const lines = linesOf(asking, living);
    const together = Math.max(1, Math.min(mostTogether, Math.floor(perPass / lines.length)));
    let room = mostAsked;
    const turns = new Map<Tracked, number>();
    const made = new Map(asking.map((tracked) => [tracked, [...tracked.asked.values()]]));
    const requests: Request[] = [];
    const serve = (tracked: Tracked, count: number) => {
      const from = turns.get(tracked) ?? 0;
      for (const request of made.get(tracked)?.slice(from, from + count) ?? []) requests.push(request);
      turns.set(tracked, from + count);
    };
    for (
      let open = lines;
      room > 0 && open.length > 0;
      open = open.filter(({ at, jobs }) => at < jobs.length)
    )
      for (const line of open) {
        let left = Math.min(together, room);
        while (left > 0) {
          const tracked = line.jobs[line.at];
          if (tracked === undefined) break;
          const lacking = wantedBy(tracked) - (turns.get(tracked) ?? 0);
          const count = Math.min(left, lacking);
          serve(tracked, count);
          left -= count;
          room -= count;
          if (count === lacking) line.at++;
        }
      }
    this.#room.set(queue, room);
    for (const tracked of lines.flatMap(({ jobs }) => jobs)) {
      tracked.turn = Math.max(1, turns.get(tracked) ?? 0);
      // Those that are beyond its turn now come last.
      serve(tracked, tracked.asked.size);
      const more = tracked.turn - tracked.asked.size;
      if (more < 0 || isWorthMaking(more, tracked.asked.size, tracked.wanted)) changed(tracked);
    }
    return requests;
  }

  /** How many of the jobs that it wants a HTCJob may ask its queue for: one at least. */
  limit(tracked: Tracked, queue: string, wanted: number): number {
    if (isRefused(tracked)) return 1;
    const { has, share } = partOf(tracked);
    const room = this.#roomOf(queue);
    const most = room > 0 ? Math.max(share, has + room) : share;
    return Math.min(wanted, Math.max(most, 1));
  }

  /** The same, for one that asks now. */
  take(tracked: Tracked, queue: string, wanted: number): number {
    const { has, share } = partOf(tracked);
    const taken = this.limit(tracked, queue, wanted);
    this.#room.set(queue, this.#roomOf(queue) - Math.max(0, taken - Math.max(share, has)));
    return taken;
  }

  /** Whether HTCJobs of the queue wait for the turns of others. */
  isFull(queue: string): boolean {
    return this.#roomOf(queue) <= 0;
  }

  #roomOf(queue: string): number {
    return this.#room.get(queue) ?? mostAsked;
  }
}

/** Whether a HTCJob that may ask for so many more jobs makes their requests now. */
export function isWorthMaking(more: number, has: number, wanted: number): boolean {
  return more > 0 && more >= Math.min(wanted - has, has, fewestMade);
}

export function isRefused({ waiting }: Pick<Tracked, 'waiting'>): boolean {
  return waiting !== undefined && refusals.has(waiting.code);
}

/** What a HTCJob asks for, and its share by the last pass. Until a pass shares them out, it keeps what it has. */
function partOf({ turn, asked }: Tracked) {
  return { has: asked.size, share: turn ?? asked.size };
}

function wantedBy(tracked: Tracked): number {
  return isRefused(tracked) ? 1 : Math.max(tracked.wanted, tracked.asked.size);
}

/** By namespace, in the order of service. */
function linesOf(asking: readonly Tracked[], living: ReadonlyMap<string, number>): readonly Line[] {
  const byAge = asking.toSorted((one, other) => one.createdAt - other.createdAt);
  const countOf = (namespace: string) => living.get(namespace) ?? 0;
  return [...Map.groupBy(byAge, ({ meta }) => meta.namespace)]
    .toSorted(([one], [other]) => countOf(one) - countOf(other))
    .map(([, jobs]) => ({ jobs, at: 0 }));
}

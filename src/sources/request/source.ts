import type {
  Desk,
  OperatorRequests,
  Request,
  Source,
  SourceQueue,
  Wanted,
  WorkerNews,
} from '../../plugins/contracts/index.ts';
import type { OperatorRequest } from '../../worker/operator-request.ts';

/** Asks for each worker of each open request, until it hears that the worker has a row. */
export class OperatorSource implements Source {
  readonly #requests: OperatorRequests;
  /** By request, the indexes that have, or had, a worker. Requests that are served are not in it. */
  readonly #known = new Map<string, Set<number>>();
  /** How many workers each request wants that the last passes asked for. */
  readonly #counts = new Map<string, number>();
  /** The workers of a request: a pass that sees the same objects again need not judge them again. */
  readonly #wants = new WeakMap<OperatorRequest, readonly Request[]>();

  constructor(requests: OperatorRequests) {
    this.#requests = requests;
  }

  async wanted({ name }: Pick<SourceQueue, 'name'>): Promise<Wanted> {
    const open = await this.#requests.open(name);
    for (const { id, count } of open) this.#counts.set(id, count);
    return { requests: open.flatMap((request) => this.#lacking(request)), groups: [], reasons: [] };
  }

  async told(news: readonly WorkerNews[]): Promise<void> {
    const full = new Set<string>();
    // Whatever the news are, they are of an origin that has, or had, its worker: an answer is left out beside another news.
    for (const { origin } of news) {
      const count = this.#counts.get(origin.uid);
      // A request that no pass has seen is asked for again at the next one, and answered then.
      if (count === undefined) continue;
      const known = this.#known.get(origin.uid) ?? new Set<number>();
      this.#known.set(origin.uid, known.add(origin.index));
      if (known.size >= count) full.add(origin.uid);
    }
    if (full.size === 0) return;
    await this.#requests.served([...full]);
    this.#forget(full);
  }

  /** Ends the workers of requests that operators take back. */
  async run(desk: Desk, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const { id, count, reason } of await this.#requests.withdrawn(signal)) {
        const origins = Array.from({ length: count }, (_, index) => ({ uid: id, index }));
        await desk.end(origins, reason);
        await this.#requests.ended([id]);
        this.#forget([id]);
      }
    }
  }

  #lacking(request: OperatorRequest): readonly Request[] {
    const known = this.#known.get(request.id);
    const wants = this.#wants.get(request) ?? wantsOf(request);
    this.#wants.set(request, wants);
    return known === undefined ? wants : wants.filter(({ origin }) => !known.has(origin.index));
  }

  #forget(ids: Iterable<string>): void {
    for (const id of ids) {
      this.#known.delete(id);
      this.#counts.delete(id);
    }
  }
}

/** A request of one worker is no group: a group has a submission of its own, and single workers share one. */
function wantsOf({ id, count, requirements = {}, payload }: OperatorRequest): readonly Request[] {
  return Array.from({ length: count }, (_, index) => ({
    origin: { uid: id, index },
    requirements,
    ...(count > 1 && { groupId: id }),
    ...(payload !== undefined && { payload }),
  }));
}

import { clearScreenDown, moveCursor } from 'node:readline';
import type { Holder } from '../daemon/lock.ts';
import { queueViews, workerView } from '../daemon/view.ts';
import type { Store } from '../store/store.ts';
import { isoTime } from '../util/clock.ts';
import type { Environment } from './environment.ts';
import { formatTable } from './output.ts';
import { columnsFor } from './queues.ts';
import { workerColumns } from './workers.ts';

/** How often the view is brought up to date, ms. */
const interval = 500;
/** Workers in the table, newest first. */
const shownWorkers = 12;
/** Transitions shown at once where there is no table; more than that scrolls by unread. */
const shownTransitions = 200;

/** The needs of the view: the world, and the address of the status page, if there is one. */
type ViewEnvironment = Pick<Environment, 'out' | 'clock'> & { readonly url: string | undefined };

/** Shows what happens until `signal` aborts: a table that stays in place on a terminal, a line per event elsewhere. */
export async function showLive(
  store: Store,
  holder: Holder | 'unknown',
  environment: ViewEnvironment,
  signal: AbortSignal,
): Promise<void> {
  const view = environment.out.isTTY
    ? new RefreshedTable(store, holder, environment)
    : new EventLines(store, environment);
  while (!signal.aborted) {
    await view.show();
    await environment.clock.sleep(interval, signal);
  }
  await view.show();
}

class RefreshedTable {
  readonly #store: Store;
  readonly #holder: Holder | 'unknown';
  readonly #environment: ViewEnvironment;
  #lines = 0;

  constructor(store: Store, holder: Holder | 'unknown', environment: ViewEnvironment) {
    this.#store = store;
    this.#holder = holder;
    this.#environment = environment;
  }

  async show(): Promise<void> {
    const { out, clock, url } = this.#environment;
    const queues = await queueViews(this.#store, this.#holder);
    const workers = (await this.#store.workers.list({ limit: shownWorkers })).map(workerView);
    const lines = [
      `thresher  ${isoTime(clock.now())}  Ctrl-C stops the daemon; its workers go on`,
      ...(url === undefined ? [] : [`status page: ${url}`]),
      '',
      ...formatTable(columnsFor(queues), queues),
      '',
      ...formatTable(workerColumns, workers),
    ];
    const frame = lines.slice(0, out.rows - 1).map((line) => line.slice(0, out.columns - 1));
    moveCursor(out, 0, -this.#lines);
    clearScreenDown(out);
    out.write(`${frame.join('\n')}\n`);
    this.#lines = frame.length;
  }
}

class EventLines {
  readonly #store: Store;
  readonly #environment: ViewEnvironment;
  #after = 0;
  #reasons = new Map<string, string>();
  #first = true;

  constructor(store: Store, environment: ViewEnvironment) {
    this.#store = store;
    this.#environment = environment;
  }

  async show(): Promise<void> {
    const { out, url } = this.#environment;
    if (this.#first && url !== undefined) out.write(`status page: ${url}\n`);
    const transitions = await this.#store.workers.transitionsSince(
      this.#after,
      this.#first ? 1 : shownTransitions,
    );
    for (const { id, at, worker_id, queue, to_status, message } of transitions) {
      this.#after = id;
      // Events from before the start of this daemon are no news.
      if (this.#first) continue;
      out.write(
        `${isoTime(at)} worker ${worker_id} of ${queue}: ${to_status}${message === null ? '' : ` (${message})`}\n`,
      );
    }
    this.#first = false;
    for (const { queue, reasons } of await this.#store.queues.all()) {
      const text = reasons[0]?.message ?? '';
      if (this.#reasons.get(queue) === text) continue;
      this.#reasons.set(queue, text);
      out.write(
        `${isoTime(this.#environment.clock.now())} queue ${queue}: ${text === '' ? 'submitting' : text}\n`,
      );
    }
  }
}

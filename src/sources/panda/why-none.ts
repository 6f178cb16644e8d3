import type { Reason } from '../../plugins/contracts/index.ts';
import type { PandaCallFailure, PandaOrder } from '../../plugins/contracts/panda-status.ts';
import type { JobCount } from './jobs.ts';
import { isoSeconds } from '../../util/clock.ts';

/** Facts of the link that say why a queue gets no workers, or fewer than an operator may expect. Times are ms UTC. */
export interface LinkFacts {
  readonly now: number;
  readonly startedAt: number;
  readonly harvesterId: string;
  /** Whether workers may be made at all. */
  readonly isReady: boolean;
  readonly failure: PandaCallFailure | undefined;
}

/** Before the link is ready. */
export function whyStarting({ failure }: LinkFacts): Reason[] {
  const why = failure === undefined ? '' : `: ${failure.message} (${failure.code})`;
  const message = `the link to the PanDA server is starting${why}`;
  return [{ code: 'panda-starting', message }];
}

/** The server gives an order for each site every 5 minutes, also one of zeros. Three of them missing are no chance, ms. */
const orderedWithin = 900_000;

/** For a queue whose workers the server orders. */
export function whyNoOrder(
  site: string,
  order: PandaOrder | undefined,
  statisticsAt: number | undefined,
  facts: LinkFacts,
): Reason[] {
  const failing = whyFailing(facts);
  if (order !== undefined && order.rest > 0) return [];
  const { now, startedAt, harvesterId } = facts;
  if (order === undefined || now - Math.max(order.takenAt, startedAt) > orderedWithin) {
    const minutes = Math.max(0, Math.floor((now - startedAt) / 60_000));
    const since = order === undefined ? `in ${minutes} min` : `since ${isoSeconds(order.takenAt)}`;
    const reported =
      statisticsAt === undefined
        ? 'the server has not taken statistics yet'
        : `statistics were taken last at ${isoSeconds(statisticsAt)}`;
    const message = `the PanDA server has given no order for ${site} ${since} (${reported}): is harvester of the queue in CRIC ${harvesterId}?`;
    return [...failing, { code: 'panda-no-order', message }];
  }
  const [total = 0, wanted = 0] = [order.said, order.wanted].map((counts) =>
    Object.values(counts).reduce((sum, count) => sum + count, 0),
  );
  const less =
    total === wanted
      ? ''
      : `, of which ${total - wanted} had been made before the server knew of them, or are more than thresher takes`;
  const at = isoSeconds(order.createdAt);
  const reason: Reason =
    total === 0
      ? { code: 'panda-order-zero', message: `the order of the PanDA server of ${at} asks for 0 new workers` }
      : {
          code: 'panda-order-fulfilled',
          message: `the order of the PanDA server of ${at} (${total} new workers${less}) is fulfilled`,
        };
  return [...failing, reason];
}

/** What a queue that counts the activated jobs itself knows of them. */
export interface JobFacts {
  readonly count: JobCount | undefined;
  /** Those that share the jobs; undefined: the server has not told. */
  readonly instances: number | undefined;
  /** Workers that it wants. */
  readonly wanted: number;
}

/** For a queue that counts the activated jobs itself. */
export function whyNoJobs(site: string, { count, instances, wanted }: JobFacts, facts: LinkFacts): Reason[] {
  const failing = whyFailing(facts);
  const unknown =
    count === undefined
      ? `the number of activated jobs of ${site}`
      : `which instances report workers of ${site}: activateWorkerFactor auto divides its jobs by their number`;
  if (count === undefined || instances === undefined)
    return [...failing, { code: 'panda-jobs-unknown', message: `the PanDA server has not told ${unknown}` }];
  if (wanted > 0) return [];
  const { activated, at } = count;
  const shared = instances === 1 ? '' : `, which ${instances} instances share`;
  const message = `${site} had ${activated} activated jobs at ${isoSeconds(at)}${shared}, and as many workers are queued as these need`;
  return [...failing, { code: 'panda-jobs-served', message }];
}

function whyFailing({ failure }: LinkFacts): Reason[] {
  if (failure === undefined) return [];
  const { code, since, call, message } = failure;
  return [{ code, message: `the PanDA server fails since ${isoSeconds(since)} (${call}): ${message}` }];
}

import type { Reason } from '../../worker/reason.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Standing } from './fence.ts';

/**
 * How long the server may still carry out a creation after its connection was closed, ms. An API server ends what it has taken
 * in within its `--request-timeout` (60 s unless an operator says otherwise), and a load balancer before it holds a request for
 * about as long.
 */
export const longestWay = 120_000;

interface Rule {
  readonly stands: Standing['kind'];
  readonly attempt: 'first' | 'later' | 'any';
  /** Whether it stays in its place for `longestWay` after the server made it. */
  readonly stays: boolean;
}

/**
 * Objects that must stay under a worker's name: nothing else turns a late creation away. The submitter makes a fence,
 * and a Job of a later attempt, only after it closed the connection of each earlier creation: `longestWay` counts from
 * when the server made them. A first attempt is one request, and its Job is the result. Under a name without a Job
 * nothing is left that could stay: a kill puts a fence there first.
 */
const rules: readonly Rule[] = [
  { stands: 'fence', attempt: 'any', stays: true },
  { stands: 'worker', attempt: 'first', stays: false },
  { stands: 'worker', attempt: 'later', stays: true },
  { stands: 'stranger', attempt: 'any', stays: false },
  { stands: 'nothing', attempt: 'any', stays: false },
];

/** Why what stands under a worker's name is not to be removed yet. `now` is ms UTC by the cluster's clock. */
export function keptFor(
  { workerId, attempt }: Pick<Worker, 'workerId' | 'attempt'>,
  standing: Standing,
  now: number,
): Reason | undefined {
  const which = attempt > 1 ? 'later' : 'first';
  const rule = rules.find(
    (one) => one.stands === standing.kind && (one.attempt === 'any' || one.attempt === which),
  );
  if (rule?.stays !== true || !('createdAt' in standing)) return undefined;
  const left = standing.createdAt + longestWay - now;
  // An object without a creation time from the server does not stay.
  if (!(left > 0)) return undefined;
  const what = standing.kind === 'fence' ? 'its fence' : 'its Job';
  const message = `an earlier creation of worker ${workerId} may still reach the API server: ${what} stays for another ${Math.ceil(left / 1000)} s`;
  return { code: 'late-creation', message };
}

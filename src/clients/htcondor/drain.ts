import type { CondorTools, Tool } from './tools.ts';

/** An order to one startd. */
export interface DrainWish {
  /**
   * `Name` of one of its slots. With the ad of the slot the collector hands out a session, without which a startd that has no signing
   * key could not check who orders: `MyAddress` is refused there. The name of a machine would be resolved by DNS, and that of a startd with a name of its own
   * is not found (seen: 23.9).
   */
  readonly slot: string;
  /**
   * An expression that the startd itself evaluates over each of its slots when the order arrives: it takes the order only where all are
   * true. Made of safe parts; see `classad.ts`.
   */
  readonly check: string;
  readonly reason: string;
}

/**
 * `draining`: the startd takes no further jobs and ends after its last one; it may have drained before. `refused`: its check was
 * false, and nothing changed.
 */
export type DrainAnswer = 'draining' | 'refused';

/**
 * Retirement, s, from which a graceful drain lets jobs end by themselves. A startd ends the jobs of a drain once their retirement time
 * is over: the lesser of `MAXJOBRETIREMENTTIME` of the startd, which is 0 by default, and of the job's own. A job of a nice user has none.
 */
export const longRetirement = 86_400;

/** On a slot without a job. */
export const noClaim = 'State =!= "Claimed" && State =!= "Preempting"';

/**
 * A check over a slot whose job a drain lets run. A suspended job is no less a job. A slot that is claimed and idle has none: its next
 * one goes back to its queue.
 */
export const harmlessDrain = `(${noClaim}) || Activity =?= "Idle" || RetirementTimeRemaining >= ${longRetirement}`;

/** ms. A startd answers at once or hangs. */
const timeLimit = 20_000;

/**
 * Lets a startd finish the jobs that run there, take no others, and end. HTCondor keeps the promise only as long as
 * `MAXJOBRETIREMENTTIME` of the startd says, which is 0 by default: `check` has to see to that.
 * @throws HTCondorError where the startd gave no answer; a `maybeDone` order may have come through
 */
export async function drainStartd(
  tools: CondorTools,
  { slot, check, reason }: DrainWish,
  signal: AbortSignal,
): Promise<DrainAnswer> {
  const how = ['-graceful', '-exit-on-completion', '-reason', reason, '-check', check];
  const tool: Tool = { command: 'condor_drain', args: [...how, slot], changes: true, timeLimit };
  const end = await tools.run(tool, signal);
  if (end.status === 0) return 'draining';
  // Its numbers are those of `condor_startd.V6/ResMgr.h`; it has no other words for them.
  if (/error code 10001\b|Draining already in progress/.test(end.stderr)) return 'draining';
  if (/error code 10003\b|Draining check expression is false/.test(end.stderr)) return 'refused';
  throw tools.failure(tool, end);
}

import { toRanges } from '../../../clients/htcjob/numbers.ts';
import type { HtcJobCondition, HtcJobStatus } from '../../../clients/htcjob/resource.ts';
import { cutMessage } from '../status.ts';
import { isoSeconds } from '../../../util/clock.ts';

/** Facts about the outputs of the jobs of one resource. */
export interface OutputFacts {
  /** Below the directory of the operator. */
  readonly directory: string;
  /** Number of jobs. */
  readonly count: number;
  /** Numbers of the jobs whose output is kept. */
  readonly kept: ReadonlySet<number>;
  /** By number of the job: why it has no output, for good; "" where that is forgotten. */
  readonly missing: ReadonlyMap<number, string>;
  /** Why an output cannot be kept now. */
  readonly trouble: string | undefined;
}

/** A status with the facts about the outputs of the jobs. @param now ms UTC */
export function withOutputs(status: HtcJobStatus, facts: OutputFacts, now: number): HtcJobStatus {
  const { directory, kept, missing } = facts;
  const [keptRanges, missingRanges] = [toRanges([...kept]), toRanges([...missing.keys()])];
  const condition = conditionOf(status, facts, now);
  const others = (status.conditions ?? []).filter(({ type }) => type !== 'OutputKept');
  return {
    ...status,
    conditions: condition === undefined ? others : [...others, condition],
    ...(kept.size > 0 && { outputDirectory: directory }),
    ...(keptRanges !== undefined && { outputIndexes: keptRanges }),
    ...(missingRanges !== undefined && { outputMissing: missingRanges }),
  };
}

function conditionOf(
  { conditions }: HtcJobStatus,
  facts: OutputFacts,
  now: number,
): HtcJobCondition | undefined {
  const before = conditions?.find(({ type }) => type === 'OutputKept');
  const said = sayingOf(facts, before);
  if (said === undefined) return before;
  const { status, reason, message } = said;
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : isoSeconds(now);
  return {
    type: 'OutputKept',
    status,
    reason,
    message: cutMessage(message),
    lastTransitionTime,
  };
}

type Saying = Pick<HtcJobCondition, 'status' | 'reason' | 'message'>;

function sayingOf(
  { directory, count, kept, missing, trouble }: OutputFacts,
  before: HtcJobCondition | undefined,
): Saying | undefined {
  if (trouble !== undefined)
    return {
      status: 'False',
      reason: 'OutputNotKept',
      message: `thresher tries again to keep the output of ${trouble}`,
    };
  const all = kept.size + missing.size;
  if (all < count) {
    if (before?.reason !== 'OutputNotKept') return undefined;
    return { status: 'False', reason: 'OutputAwaited', message: 'thresher fetches the output of ended jobs' };
  }
  const [first] = missing;
  if (first === undefined)
    return {
      status: 'True',
      reason: 'OutputKept',
      message: `the output of all ${count} jobs is in ${directory}`,
    };
  const [number, why] = first;
  // After a restart the reason is known to the resource alone.
  if (why === '' && before?.reason === 'OutputMissing') return before;
  return {
    status: 'False',
    reason: 'OutputMissing',
    message: `${missing.size} of ${count} jobs have no output; job ${number}: ${why === '' ? 'the reason is forgotten' : why}`,
  };
}

import { jobIdText } from '../../../clients/htcondor/classad.ts';
import type { Clock } from '../../../util/clock.ts';
import { ThresherError, toReason } from '../../../worker/errors.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { FindOutcome } from '../../contracts/submitter.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import {
  halfReason,
  inQueue,
  isHalf,
  jobOfWorker,
  type LookedUp,
  lookUp,
  portions,
  whereSame,
} from '../look-up.ts';
import type { Job } from '../marks.ts';
import { elementOf } from '../place/grid-endpoint.ts';

/** How long the schedd may take to see that all files of a spooled job have come, ms. */
const spoolWait = 5000;
const spoolInterval = 300;

/**
 * Why nothing can arrive later of what this says is absent. Whatever a `condor_submit` asks for it asks step by step, and goes
 * on only with the answer; the schedd stays in that conversation until it is over, and answers no other call meanwhile. So:
 * 1. no further one is started for these attempts (`fenced`), and those that were started, by whatever daemon, have ended
 *    (`submits`);
 * 2. a question that is asked after that is answered after the schedd has read whatever was on its way from them. A schedd
 *    that hangs does not answer, and then nothing is absent.
 */
export async function find(
  schedd: HTCondorSchedd,
  workers: readonly Worker[],
  clock: Clock,
  signal: AbortSignal,
): Promise<ReadonlyMap<number, FindOutcome>> {
  const outcomes = new Map<number, FindOutcome>();
  for (const { workerId, attempt } of workers)
    schedd.fenced.set(workerId, Math.max(attempt, schedd.fenced.get(workerId) ?? 0));
  // The schedd said no to it, and was not asked since.
  const refused = ({ workerId, attempt }: Worker) => schedd.refused.get(workerId) === attempt;
  for (const { workerId } of workers.filter(refused)) outcomes.set(workerId, { kind: 'absent' });
  let open = workers.filter((worker) => !refused(worker));
  if (open.length === 0) return outcomes;
  try {
    const living = await schedd.submits.end(new Set(open.map(({ workerId }) => workerId)), signal);
    for (const [workerId, error] of living) outcomes.set(workerId, { kind: 'unknown', error });
    open = open.filter(({ workerId }) => !living.has(workerId));
    const started = await schedd.jobQueue.started(signal);
    const { jobs, unsaid } = await settled(schedd, open, clock, signal);
    // Also of one that is found: in another queue its number, and its mark, are those of another job.
    await schedd.jobQueue.require(started, signal);
    for (const [workerId, error] of unsaid) outcomes.set(workerId, { kind: 'unknown', error });
    const said = open.filter(({ workerId }) => !unsaid.has(workerId));
    await removeHalves(schedd, [...jobs.values()].flat().filter(isHalf), signal);
    const absent = said.filter(({ workerId }) => (jobs.get(workerId) ?? []).every(isHalf));
    await schedd.bundles.dropAll(new Set(absent.map(({ workerId }) => workerId)));
    for (const worker of said) {
      const whole = (jobs.get(worker.workerId) ?? []).filter((job) => !isHalf(job));
      const job = jobOfWorker(worker, whole);
      if (job === undefined) outcomes.set(worker.workerId, { kind: 'absent' });
      else {
        const handle = { batchID: jobIdText(job.id), submissionHost: schedd.submissionHost };
        outcomes.set(worker.workerId, { kind: 'found', handle, ...elementOf(job.ce) });
      }
    }
  } catch (error) {
    for (const { workerId } of open) outcomes.set(workerId, { kind: 'unknown', error: toReason(error) });
  }
  return outcomes;
}

/** The jobs of workers, once the schedd knows of those whose files came in the last moment that they are whole. */
async function settled(
  schedd: HTCondorSchedd,
  workers: readonly Worker[],
  clock: Clock,
  signal: AbortSignal,
): Promise<LookedUp> {
  const deadline = clock.monotonic() + spoolWait;
  for (;;) {
    const found = await lookUp(schedd, workers, signal, { history: true });
    const late = signal.aborted || clock.monotonic() > deadline;
    if (late || ![...found.jobs.values()].flat().some(isHalf)) return found;
    await clock.sleep(spoolInterval, signal);
  }
}

/** @throws the reason that keeps them: until they are removed, a user could release them. */
async function removeHalves(
  schedd: HTCondorSchedd,
  halves: readonly Job[],
  signal: AbortSignal,
): Promise<void> {
  for (const some of portions(halves)) {
    const these = whereSame(some);
    await schedd.client.act('remove', `${schedd.mine} && (${these})`, halfReason, signal);
    const left = await inQueue(schedd, `(${these}) && JobStatus =!= 3`, signal);
    if (left.length > 0) {
      const message = `${left.length} jobs whose submission was cut off could not be removed from ${schedd.submissionHost}`;
      throw new ThresherError('htcondor-submit-lives', message);
    }
  }
}

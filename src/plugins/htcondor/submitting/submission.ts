import pMap from 'p-map';
import { type JobId, jobIdText } from '../../../clients/htcondor/classad.ts';
import { type HTCondorError, isHTCondorError } from '../../../clients/htcondor/errors.ts';
import { ThresherError, toReason } from '../../../worker/errors.ts';
import type { Worker, WorkerError, WorkerToStart } from '../../../worker/worker.ts';
import type { Context } from '../../contracts/context.ts';
import type { SubmitOutcome } from '../../contracts/submitter.ts';
import type { Job } from '../marks.ts';
import { hasBundle } from '../payload/bundle.ts';
import type { Reader } from '../payload/bundles.ts';
import { ceName, cesOf } from '../place/ce-list.ts';
import type { CeTally } from '../place/ce-tally.ts';
import { shareAmongCes } from '../place/ce-weight.ts';
import { noGoodToken, tokenFault } from '../place/tokens.ts';
import { elementOf } from '../place/grid-endpoint.ts';
import { keepTogether } from '../place/groups.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import type { DescribedBatch } from '../template/describe.ts';
import type { ChosenCe } from '../template/placeholders.ts';
import { clustersOf } from './clusters.ts';
import type { ReadyTemplate, SubmitTexts } from './submit-texts.ts';

/** Commands that one submission has under way: the schedd takes them one after the other. */
const atOnce = 4;
/** How often parts of a refused `condor_submit` are tried by themselves in one call. */
const mostFurtherTries = 20;

export interface SubmissionParts {
  readonly schedd: HTCondorSchedd;
  /** With absolute paths. */
  readonly config: HTCondorSubmitterConfig;
  readonly context: Context;
  readonly tally: CeTally;
  readonly texts: SubmitTexts;
  readonly signal: AbortSignal;
}

/** Facts that the clusters of a submission share. */
interface Target {
  readonly directory: string;
  readonly template: ReadyTemplate;
  readonly ce: ChosenCe | undefined;
  /** The queue and its CE, and how many of its jobs the schedd had taken before. */
  readonly place: string;
  readonly takenBefore: number;
}

/**
 * The workers of one call that go to the same schedd: one `condor_submit` for all of them that have the same CE, and one more for
 * each group.
 */
export class Submission {
  readonly #parts: SubmissionParts;
  readonly #outcomes = new Map<number, SubmitOutcome>();
  #furtherTries = mostFurtherTries;

  constructor(parts: SubmissionParts) {
    this.#parts = parts;
  }

  async submit(workers: readonly WorkerToStart[]): Promise<ReadonlyMap<number, SubmitOutcome>> {
    const due = this.#withoutFenced(workers);
    if (due.length === 0) return this.#outcomes;
    const { config, schedd, signal } = this.#parts;
    try {
      // What another queue takes is lost when its own is back.
      await schedd.jobQueue.requireNow(signal);
    } catch (error) {
      this.#reject(due, toReason(error));
      return this.#outcomes;
    }
    const { ces } = cesOf(config);
    if (ces.length === 0) await this.#submitBatch(due, undefined);
    const usable: ChosenCe[] = [];
    for (const ce of ces) if ((await tokenFault(ce, this.#parts)) === undefined) usable.push(ce);
    const none = usable.length === 0 ? await noGoodToken(ces, this.#parts) : undefined;
    if (none !== undefined) this.#reject(due, none);
    else for (const [ce, some] of this.#sharedAmong(usable, due)) await this.#submitBatch(some, ce);
    return this.#outcomes;
  }

  #withoutFenced(workers: readonly WorkerToStart[]): readonly WorkerToStart[] {
    const fenced = workers.filter((worker) => this.#isFenced(worker));
    for (const worker of fenced) {
      const message = `attempt ${worker.attempt} had been given up before it was sent`;
      this.#reject([worker], { code: 'htcondor-fenced', message });
    }
    return fenced.length === 0 ? workers : workers.filter((worker) => !fenced.includes(worker));
  }

  #isFenced({ workerId, attempt }: Worker): boolean {
    return (this.#parts.schedd.fenced.get(workerId) ?? 0) >= attempt;
  }

  /** The schedd does not have them, and never will. */
  #reject(workers: readonly Worker[], error: WorkerError, permanent = false): void {
    for (const { workerId, attempt } of workers) {
      this.#parts.schedd.refused.set(workerId, attempt);
      this.#outcomes.set(workerId, { kind: 'rejected', permanent, error });
    }
  }

  /** All these workers have the same CE. */
  async #submitBatch(due: readonly WorkerToStart[], ce: ChosenCe | undefined): Promise<void> {
    const { schedd, texts } = this.#parts;
    const template = await texts.template(ce);
    if (Array.isArray(template)) {
      const message = template.map((problem) => problem.message).join('; ');
      this.#reject(due, { code: 'preflight', message });
      return;
    }
    let directory: string;
    try {
      directory = await texts.directory(schedd);
    } catch (error) {
      this.#reject(due, toReason(error));
      return;
    }
    const clusters = clustersOf(due);
    const place = JSON.stringify([this.#parts.context.queue, ce && ceName(ce)]);
    const to = { directory, template, ce, place, takenBefore: schedd.refusedByRule.takenOf(place) };
    await pMap(clusters, (some) => this.#submitCluster(some, to), {
      concurrency: atOnce,
    });
  }

  /** One `condor_submit`: all its workers have the same description. */
  async #submitCluster(workers: readonly WorkerToStart[], to: Target): Promise<void> {
    const { schedd, texts } = this.#parts;
    const { template, ce } = to;
    const due = this.#withoutFenced(workers);
    if (due.length === 0) return;
    let batch: DescribedBatch;
    try {
      batch = texts.describe(schedd, template, due, ce);
    } catch (error) {
      this.#reject(due, toReason(error));
      return;
    }
    // The same values would be refused again.
    for (const worker of due) {
      const error = batch.rejected.get(worker.workerId);
      if (error !== undefined) this.#reject([worker], error, true);
    }
    if (batch.workers.length === 0) return;
    if (batch.workers.some(hasFiles)) await this.#sendWithFiles(batch, to);
    else await this.#send(batch, to);
    if (ce !== undefined) this.#countAt(ce, batch.workers);
  }

  /** A bundle stays as long as its job may read it. A schedd that spools has a copy when `condor_submit` ends. */
  async #sendWithFiles(batch: DescribedBatch, to: Target): Promise<void> {
    const { schedd, config, texts } = this.#parts;
    const { bundles } = schedd;
    const bundled = batch.workers.filter(hasBundle);
    try {
      const reader = await this.#reader();
      await bundles.write(bundled, reader);
      const leaving = batch.workers.flatMap(({ workerId, payload }) =>
        payload?.output === undefined ? [] : [{ workerId, leaves: payload.output }],
      );
      await schedd.outputs.make(leaving, reader);
      // The daemon may have given a worker up while it wrote.
      const left = this.#withoutFenced(batch.workers);
      const same = left.length === batch.workers.length;
      if (left.length > 0)
        await this.#send(same ? batch : texts.describe(schedd, to.template, left, to.ce), to);
    } catch (error) {
      this.#reject(batch.workers, toReason(error));
    } finally {
      bundles.submitted(bundled);
    }
    const needed = (kind: string | undefined) =>
      kind === 'unknown' || (kind === 'accepted' && !config.useSpool);
    const over = bundled.filter(({ workerId }) => !needed(this.#outcomes.get(workerId)?.kind));
    await bundles.drop(over).catch((error: unknown) => {
      this.#parts.context.log.warn('payloads of a submission that is over cannot be removed', {
        ...toReason(error),
      });
    });
  }

  /** Jobs are read by their own user. A daemon of root submits for another one, who has to own `logDir` anyway. */
  async #reader(): Promise<Reader | undefined> {
    const { config, context } = this.#parts;
    if (process.geteuid?.() !== 0 || config.useSpool) return undefined;
    const owned = await context.files.stat(config.logDir);
    return owned === undefined || owned.uid === 0 ? undefined : { uid: owned.uid, gid: owned.gid };
  }

  async #send({ description, workers }: DescribedBatch, to: Target): Promise<void> {
    const { schedd, config, signal } = this.#parts;
    const {
      directory,
      template: { environment },
      ce,
    } = to;
    for (const { workerId } of workers) {
      schedd.refused.delete(workerId);
      schedd.fenced.delete(workerId);
    }
    let withheld: WorkerError | undefined;
    // It may have waited long for its turn.
    const mayStart = () => {
      withheld = this.#whyWithheld(workers);
      if (withheld !== undefined) throw new Error(withheld.message);
    };
    try {
      const ids = workers.map(({ workerId }) => workerId);
      const submit = await schedd.submits.begin(ids, mayStart);
      const { onStart } = submit;
      const jobs = await schedd.client
        .submit(description, { spool: config.useSpool, directory, environment, onStart }, signal)
        .finally(submit.over);
      if (jobs.length !== workers.length) {
        const message = `${workers.length} workers were submitted, and condor_submit speaks of ${jobs.length} jobs`;
        throw new ThresherError('condor-answer', message);
      }
      for (const [index, { workerId }] of workers.entries()) {
        const id = jobs[index];
        if (id === undefined) continue;
        const handle = { batchID: jobIdText(id), submissionHost: schedd.submissionHost };
        schedd.fresh.set(handle.batchID, this.#freshJob(id, workerId, ce));
        this.#outcomes.set(workerId, { kind: 'accepted', handle, ...elementOf(ce && ceName(ce)) });
      }
      schedd.refusedByRule.took(to.place, ids);
    } catch (error) {
      if (withheld !== undefined) {
        this.#reject(workers, withheld);
        return;
      }
      const reason = toReason(error);
      if (isHTCondorError(error, 'condor-refused')) await this.#sendInHalves(workers, to, reason);
      else if (isHTCondorError(error) && (await this.#isOfPayload(error, description, workers, to)))
        this.#reject(workers, { ...reason, code: 'condor-submit-wrong' }, true);
      else if (isHTCondorError(error) && !error.maybeDone) this.#reject(workers, reason);
      else
        for (const { workerId } of workers) this.#outcomes.set(workerId, { kind: 'unknown', error: reason });
    }
  }

  #whyWithheld(workers: readonly Worker[]): WorkerError | undefined {
    const late = workers.filter((worker) => this.#isFenced(worker));
    if (late.length === 0) return this.#parts.schedd.jobQueue.otherName;
    const message = `worker ${late.map(({ workerId }) => workerId).join(', ')} was given up before its submission began`;
    return { code: 'htcondor-fenced', message };
  }

  /**
   * Whether `condor_submit` cannot read these commands of a payload, and would without them: then it sent nothing, and would refuse them again; the
   * fault says nothing of the template or the schedd. Its words do not decide that, since they may be the user's.
   */
  async #isOfPayload(
    error: HTCondorError,
    description: string,
    workers: readonly WorkerToStart[],
    to: Target,
  ): Promise<boolean> {
    // A text that cannot be read fails at once.
    if (error.code === 'condor-timeout') return false;
    const isSaid = error.code === 'condor-submit-wrong' && !error.maybeDone;
    const isUnreadable = () => this.#isUnreadable(description, workers, to);
    if (!isSaid && !(await isUnreadable())) return false;
    if (!(await this.#takesWithout(workers, to))) return false;
    // What failed for a passing reason does not fail again, and this is for good.
    return isSaid || isUnreadable();
  }

  async #isUnreadable(
    description: string,
    [worker]: readonly WorkerToStart[],
    { directory, template: { environment } }: Target,
  ): Promise<boolean> {
    if (Object.keys(worker?.payload?.submit ?? {}).length === 0) return false;
    const { schedd, signal } = this.#parts;
    try {
      await schedd.client.dryRun(description, { directory, environment }, signal);
      return false;
    } catch (error) {
      // One that has no end says nothing of the text.
      return isHTCondorError(error) && error.code !== 'condor-timeout';
    }
  }

  /** A rule of the schedd's administrators refused one of these workers at least: which, shows when they are submitted in halves. */
  async #sendInHalves(workers: readonly WorkerToStart[], to: Target, reason: WorkerError): Promise<void> {
    const { schedd, signal } = this.#parts;
    const [worker] = workers;
    if (worker !== undefined && workers.length === 1) {
      const isForGood = schedd.refusedByRule.isForGood(worker.workerId, to.place, to.takenBefore);
      this.#reject(workers, reason, isForGood && worker.payload !== undefined);
      return;
    }
    const middle = Math.ceil(workers.length / 2);
    for (const half of [workers.slice(0, middle), workers.slice(middle)]) {
      if (this.#furtherTries > 0 && !signal.aborted) await this.#sendHalf(half, to);
      // Nothing is known of each of these by itself.
      this.#reject(
        half.filter(({ workerId }) => !this.#outcomes.has(workerId)),
        reason,
      );
    }
  }

  async #sendHalf(half: readonly WorkerToStart[], to: Target): Promise<void> {
    const { schedd, texts } = this.#parts;
    this.#furtherTries--;
    const due = this.#withoutFenced(half);
    if (due.length === 0) return;
    try {
      await this.#send(texts.describe(schedd, to.template, due, to.ce), to);
    } catch (error) {
      this.#reject(
        due.filter(({ workerId }) => !this.#outcomes.has(workerId)),
        toReason(error),
      );
    }
  }

  /** Whether `condor_submit` takes the text of these workers without the commands of their payload. */
  async #takesWithout(
    [worker]: readonly WorkerToStart[],
    { directory, template, ce }: Target,
  ): Promise<boolean> {
    const { schedd, texts, signal } = this.#parts;
    const { submit, ...payload } = worker?.payload ?? {};
    if (worker === undefined || submit === undefined || Object.keys(submit).length === 0) return false;
    try {
      const { description } = texts.describe(schedd, template, [{ ...worker, payload }], ce);
      if (description === '') return false;
      await schedd.client.dryRun(description, { directory, environment: template.environment }, signal);
      return true;
    } catch {
      // What it says of the whole text is told.
      return false;
    }
  }

  /** The next submission may come before the monitor has seen this one: it must not find the CE as empty as before. */
  #countAt(chosen: ChosenCe, workers: readonly Worker[]): void {
    const { context, tally } = this.#parts;
    const { queue, clock } = context;
    const queuedAt = clock.now();
    const ce = ceName(chosen);
    for (const { workerId, placement } of workers) {
      if (this.#outcomes.get(workerId)?.kind !== 'accepted') continue;
      tally.submitted(placement, { workerId, queue, ce, status: 'submitted', queuedAt });
    }
  }

  /** As the schedd will show it. */
  #freshJob(id: JobId, workerId: number, ce: ChosenCe | undefined): Job {
    const { queue, configId, clock } = this.#parts.context;
    const queuedAt = Math.floor(clock.now() / 1000);
    const ad = { ClusterId: id.cluster, ProcId: id.proc, JobStatus: 1, EnteredCurrentStatus: queuedAt };
    return {
      id,
      workerId,
      queue,
      owner: undefined,
      configId,
      ce: ce && ceName(ce),
      queuedAt,
      identity: undefined,
      ad,
      queued: true,
    };
  }

  #sharedAmong(
    ces: readonly ChosenCe[],
    workers: readonly WorkerToStart[],
  ): ReadonlyMap<ChosenCe, readonly WorkerToStart[]> {
    const { context, tally, config } = this.#parts;
    const { queue, queueLimit, slave, random, clock } = context;
    const { counts, running } = tally.of(queue, clock.now());
    const options = {
      queueLimit: queueLimit(running),
      newWorkers: workers.length,
      slave,
      fairsharePercent: config.ce_fairshare_percent,
    };
    const shared = shareAmongCes(ces, counts, options, random);
    const groupIds = workers.map(({ groupId }) => groupId);
    const chosen = keepTogether(shared, groupIds, random);
    const pairs = chosen.flatMap((ce, index) => {
      const worker = workers[index];
      return worker === undefined ? [] : [{ ce, worker }];
    });
    const byCe = Map.groupBy(pairs, ({ ce }) => ce);
    return new Map([...byCe].map(([ce, some]) => [ce, some.map(({ worker }) => worker)]));
  }
}

/** Whether files of a worker have to be there before its job: its bundle, or those for the words of the job. */
function hasFiles(worker: WorkerToStart): boolean {
  return hasBundle(worker) || worker.payload?.output !== undefined;
}

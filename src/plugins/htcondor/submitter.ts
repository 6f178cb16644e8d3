import pMap from 'p-map';
import { type JobId, jobIdText } from '../../clients/htcondor/classad.ts';
import { isHTCondorError } from '../../clients/htcondor/errors.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Worker, WorkerError } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import type { FindOutcome, Preflight, SubmitOutcome, Submitter } from '../contracts/submitter.ts';
import type { Rendered } from '../contracts/rendered.ts';
import type { CeTally } from './place/ce-tally.ts';
import { find } from './submitting/fence.ts';
import { connectionName, type HTCondorHub, hubOf } from './hub.ts';
import { cesOf } from './place/ce-list.ts';
import { shareAmongCes } from './place/ce-weight.ts';
import { type Schedd, shareAmong } from './place/schedds.ts';
import { absolutePaths, credentialOf, missingNow } from './paths.ts';
import type { Job } from './marks.ts';
import { renderText } from './submitting/render.ts';
import { rehearse } from './submitting/rehearsal.ts';
import { SubmitTexts } from './submitting/submit-texts.ts';
import type { HTCondorSubmitterConfig } from './schema.ts';
import type { DescribedBatch } from './template/describe.ts';
import type { ChosenCe } from './template/placeholders.ts';
import type { CondorTemplate } from './template/template.ts';

export interface SubmitterParts {
  readonly config: HTCondorSubmitterConfig;
  readonly context: Context;
  readonly tally: CeTally;
  readonly schedds: readonly Schedd[];
}

interface Sending {
  readonly directory: string;
  /** Variables of the daemon that the template names. */
  readonly environment: Readonly<Record<string, string>>;
  readonly ce: ChosenCe | undefined;
}

type Outcomes = Map<number, SubmitOutcome>;
/** The schedd does not have them, and never will. */
type Reject = (some: readonly Worker[], error: WorkerError) => void;

/** One `condor_submit` for all workers of a batch that go to the same schedd, and there to the same CE. */
export class HTCondorSubmitter implements Submitter {
  readonly #config: HTCondorSubmitterConfig;
  readonly #context: Context;
  readonly #tally: CeTally;
  readonly #texts: SubmitTexts;
  readonly #schedds: readonly Schedd[];

  constructor({ config, context, tally, schedds }: SubmitterParts) {
    this.#schedds = schedds;
    // Relative paths count from the queue file, and not from wherever the daemon was started.
    this.#config = absolutePaths(config, context.configDir);
    this.#context = context;
    this.#tally = tally;
    this.#texts = new SubmitTexts(this.#config, context);
    const { eventLog: poolLog, useSpool: spooled } = this.#config;
    for (const schedd of schedds)
      hubOf(connectionName(schedd), context).followLog(context, { poolLog, spooled });
  }

  async preflight(): Promise<Preflight> {
    const { maxHeldJobs } = this.#config;
    const { queue } = this.#context;
    const { ces } = cesOf(this.#config);
    // Each kind of CE may have a template of its own: whichever is chosen, it must be sound.
    const problems = new Map<string, Reason>();
    const templates = new Map<string, CondorTemplate>();
    for (const ce of ces.length === 0 ? [undefined] : ces) {
      const template = await this.#texts.template(ce);
      if (!Array.isArray(template)) templates.set(template.file, template);
      else for (const reason of template) problems.set(reason.message, reason);
    }
    const { files } = this.#context;
    for (const reason of await missingNow(this.#config, [...templates.values()], files))
      problems.set(reason.message, reason);
    const hubs = this.#schedds.map((schedd) => hubOf(connectionName(schedd), this.#context));
    const held = hubs.reduce((sum, hub) => sum + (hub.held.get(queue) ?? 0), 0);
    if (maxHeldJobs !== undefined && held > 0 && held >= maxHeldJobs) {
      const message = `${held} jobs of ${queue} are held, and maxHeldJobs is ${maxHeldJobs}`;
      problems.set(message, { code: 'htcondor-held-limit', message });
    }
    return { problems: [...problems.values()] };
  }

  place(count: number, open: readonly string[]): readonly string[] {
    const { minBulkToRandomizedSchedd } = this.#config;
    const reached = this.#schedds.filter((schedd) => open.includes(connectionName(schedd)));
    const shared = shareAmong(reached, count, minBulkToRandomizedSchedd, this.#context.random);
    return shared.map(connectionName);
  }

  async submit(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, SubmitOutcome>> {
    const outcomes: Outcomes = new Map();
    const places = [...Map.groupBy(workers, ({ placement }) => placement)];
    // Side by side: a schedd that hangs delays only its own.
    await pMap(places, ([placement, some]) =>
      this.#submitTo(hubOf(placement, this.#context), some, outcomes, signal),
    );
    return outcomes;
  }

  async find(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, FindOutcome>> {
    const { clock } = this.#context;
    const outcomes = new Map<number, FindOutcome>();
    const places = [...Map.groupBy(workers, ({ placement }) => placement)];
    await pMap(places, async ([placement, some]) => {
      for (const [workerId, outcome] of await find(hubOf(placement, this.#context), some, clock, signal))
        outcomes.set(workerId, outcome);
    });
    return outcomes;
  }

  rehearse(worker: Worker, signal: AbortSignal): Promise<readonly DefinitionProblem[]> {
    const hubs = this.#schedds.map((schedd) => hubOf(connectionName(schedd), this.#context));
    return rehearse(hubs, worker, (hub, stage) => this.#texts.texts(hub, worker, stage), {
      signal,
      now: this.#context.clock.now(),
    });
  }

  render(worker: Worker): Promise<Rendered> {
    const { queue } = this.#context;
    const hub = hubOf(worker.placement, this.#context);
    return renderText(this.#texts, this.#config, { hub, queue }, worker);
  }

  credentials(): readonly string[] {
    const proxy = credentialOf(this.#config);
    return proxy === undefined ? [] : [proxy];
  }

  async #submitTo(
    hub: HTCondorHub,
    workers: readonly Worker[],
    outcomes: Outcomes,
    signal: AbortSignal,
  ): Promise<void> {
    const reject: Reject = (some, error) => {
      for (const { workerId, attempt } of some) {
        hub.refused.set(workerId, attempt);
        outcomes.set(workerId, { kind: 'rejected', permanent: false, error });
      }
    };
    const [late, due] = partition(workers, ({ workerId, attempt }) => {
      return (hub.fenced.get(workerId) ?? 0) >= attempt;
    });
    for (const worker of late) {
      const message = `attempt ${worker.attempt} had been given up before it was sent`;
      reject([worker], { code: 'htcondor-fenced', message });
    }
    if (due.length === 0) return;
    const { ces } = cesOf(this.#config);
    if (ces.length === 0) await this.#submitBatch(hub, undefined, due, reject, outcomes, signal);
    for (const [ce, some] of this.#shared(ces, due))
      await this.#submitBatch(hub, ce, some, reject, outcomes, signal);
  }

  /** One submission: all workers of it have the same description, and so the same CE. */
  async #submitBatch(
    hub: HTCondorHub,
    ce: ChosenCe | undefined,
    due: readonly Worker[],
    reject: Reject,
    outcomes: Outcomes,
    signal: AbortSignal,
  ): Promise<void> {
    const template = await this.#texts.template(ce);
    if (Array.isArray(template)) {
      reject(due, { code: 'preflight', message: template.map(({ message }) => message).join('; ') });
      return;
    }
    let batch: DescribedBatch;
    let directory: string;
    try {
      directory = await this.#texts.directory(hub);
      batch = this.#texts.describe(hub, template, due, ce);
    } catch (error) {
      reject(due, toReason(error));
      return;
    }
    for (const [workerId, error] of batch.rejected) {
      const worker = due.find((one) => one.workerId === workerId);
      if (worker) reject([worker], error);
      // The same values would be refused again.
      outcomes.set(workerId, { kind: 'rejected', permanent: true, error });
    }
    if (batch.workers.length === 0) return;
    const { environment } = template;
    await this.#send(hub, batch, { directory, environment, ce }, reject, outcomes, signal);
    if (ce !== undefined) this.#countAt(ce, batch.workers, outcomes);
  }

  /** The next submission may come before the monitor has seen this one: it must not find the CE as empty as before. */
  #countAt({ endpoint: ce }: ChosenCe, workers: readonly Worker[], outcomes: Outcomes): void {
    const { queue, clock } = this.#context;
    const queuedAt = clock.now();
    for (const { workerId, placement } of workers) {
      if (outcomes.get(workerId)?.kind !== 'accepted') continue;
      this.#tally.submitted(placement, { workerId, queue, ce, status: 'submitted', queuedAt });
    }
  }

  async #send(
    hub: HTCondorHub,
    { description, workers }: DescribedBatch,
    { directory, environment, ce }: Sending,
    reject: Reject,
    outcomes: Outcomes,
    signal: AbortSignal,
  ): Promise<void> {
    for (const { workerId } of workers) {
      hub.refused.delete(workerId);
      hub.fenced.delete(workerId);
    }
    try {
      const submit = await hub.submits.begin(workers.map(({ workerId }) => workerId));
      const { onStart } = submit;
      const spool = this.#config.useSpool;
      const jobs = await hub.client
        .submit(description, { spool, directory, environment, onStart }, signal)
        .finally(submit.over);
      if (jobs.length !== workers.length) {
        const message = `${workers.length} workers were submitted, and condor_submit speaks of ${jobs.length} jobs`;
        throw new ThresherError('condor-answer', message);
      }
      for (const [index, { workerId }] of workers.entries()) {
        const id = jobs[index];
        if (id === undefined) continue;
        const handle = { batchID: jobIdText(id), submissionHost: hub.submissionHost };
        hub.fresh.set(handle.batchID, this.#freshJob(id, workerId, ce));
        outcomes.set(workerId, { kind: 'accepted', handle, ...(ce && { computingElement: ce.endpoint }) });
      }
    } catch (error) {
      const reason = toReason(error);
      if (isHTCondorError(error) && !error.maybeDone) reject(workers, reason);
      else for (const { workerId } of workers) outcomes.set(workerId, { kind: 'unknown', error: reason });
    }
  }

  /** As the schedd will show it. */
  #freshJob(id: JobId, workerId: number, ce: ChosenCe | undefined): Job {
    const { queue, configId, clock } = this.#context;
    const queuedAt = Math.floor(clock.now() / 1000);
    const ad = { ClusterId: id.cluster, ProcId: id.proc, JobStatus: 1, EnteredCurrentStatus: queuedAt };
    return {
      id,
      workerId,
      queue,
      configId,
      ce: ce?.endpoint,
      queuedAt,
      identity: undefined,
      ad,
      queued: true,
    };
  }

  #shared(ces: readonly ChosenCe[], workers: readonly Worker[]): ReadonlyMap<ChosenCe, readonly Worker[]> {
    const { queue, queueLimit, slave, random, clock } = this.#context;
    const { counts, running } = this.#tally.of(queue, clock.now());
    const options = {
      queueLimit: queueLimit(running),
      newWorkers: workers.length,
      slave,
      fairsharePercent: this.#config.ce_fairshare_percent,
    };
    const chosen = shareAmongCes(ces, counts, options, random);
    const pairs = chosen.flatMap((ce, index) => {
      const worker = workers[index];
      return worker === undefined ? [] : [{ ce, worker }];
    });
    const byCe = Map.groupBy(pairs, ({ ce }) => ce);
    return new Map([...byCe].map(([ce, some]) => [ce, some.map(({ worker }) => worker)]));
  }
}

function partition<T>(all: readonly T[], test: (one: T) => boolean): [T[], T[]] {
  return [all.filter(test), all.filter((one) => !test(one))];
}

import pMap from 'p-map';
import type { Reason } from '../../worker/reason.ts';
import type { Worker, WorkerToStart } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import type {
  FindOutcome,
  NeededCredential,
  Preflight,
  SubmitOutcome,
  Submitter,
} from '../contracts/submitter.ts';
import type { Rendered } from '../contracts/rendered.ts';
import type { CeTally } from './place/ce-tally.ts';
import { find } from './submitting/fence.ts';
import type { HTCondorSchedd } from './schedd.ts';
import { connectionName } from './where.ts';
import { cesOf } from './place/ce-list.ts';
import { needsCeToken, needsPandaToken, noGoodToken, tokensOf } from './place/tokens.ts';
import { ceTokenOf, pandaTokenOf } from './template/placeholders.ts';
import { keepTogether } from './place/groups.ts';
import { type Schedd, shareAmong } from './place/schedds.ts';
import { absolutePaths, credentialOf, missingNow } from './paths.ts';
import { renderText } from './submitting/render.ts';
import { rehearse } from './submitting/rehearsal.ts';
import { Submission } from './submitting/submission.ts';
import { SubmitTexts } from './submitting/submit-texts.ts';
import type { HTCondorSubmitterConfig } from './schema.ts';
import { lackedValues } from './template/checks.ts';
import type { CondorTemplate } from './template/template.ts';

export interface SubmitterParts {
  readonly config: HTCondorSubmitterConfig;
  readonly context: Context;
  readonly tally: CeTally;
  readonly schedds: readonly Schedd[];
  /** The schedd of a connection. */
  readonly scheddAt: (connection: string) => HTCondorSchedd;
}

/** One `condor_submit` for all workers of a batch that go to the same schedd, and there to the same CE; each group has its own. */
export class HTCondorSubmitter implements Submitter {
  readonly #config: HTCondorSubmitterConfig;
  readonly #context: Context;
  readonly #tally: CeTally;
  readonly #texts: SubmitTexts;
  readonly #schedds: readonly Schedd[];
  readonly #scheddAt: (connection: string) => HTCondorSchedd;

  constructor({ config, context, tally, schedds, scheddAt }: SubmitterParts) {
    this.#schedds = schedds;
    this.#scheddAt = scheddAt;
    // Relative paths count from the queue file, and not from wherever the daemon was started.
    this.#config = absolutePaths(config, context.configDir);
    this.#context = context;
    this.#tally = tally;
    this.#texts = new SubmitTexts(this.#config, context);
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
      if (Array.isArray(template)) {
        for (const reason of template) problems.set(reason.message, reason);
        continue;
      }
      templates.set(template.file, template);
      for (const { line, message, certain } of lackedValues(template.statements, this.#config)) {
        const placed = `${template.file}:${line}: ${message}`;
        if (certain) problems.set(placed, { code: 'preflight', message: placed });
      }
    }
    const { files } = this.#context;
    for (const reason of await missingNow(this.#config, [...templates.values()], files))
      problems.set(reason.message, reason);
    const token = await noGoodToken(ces, {
      config: this.#config,
      texts: this.#texts,
      context: this.#context,
    });
    if (token !== undefined) problems.set(token.message, token);
    const schedds = this.#schedds.map((named) => this.#scheddAt(connectionName(named)));
    const held = schedds.reduce((sum, schedd) => sum + (schedd.held.get(queue) ?? 0), 0);
    if (maxHeldJobs !== undefined && held > 0 && held >= maxHeldJobs) {
      const message = `${held} jobs of ${queue} are held, and maxHeldJobs is ${maxHeldJobs}`;
      problems.set(message, { code: 'htcondor-held-limit', message });
    }
    return { problems: [...problems.values()] };
  }

  place(
    count: number,
    open: readonly string[],
    groupIds: readonly (string | undefined)[] = [],
  ): readonly string[] {
    const { minBulkToRandomizedSchedd } = this.#config;
    const { random } = this.#context;
    const reached = this.#schedds.filter((schedd) => open.includes(connectionName(schedd)));
    const shared = shareAmong(reached, count, minBulkToRandomizedSchedd, random);
    return keepTogether(shared, groupIds, random).map(connectionName);
  }

  async submit(
    workers: readonly WorkerToStart[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, SubmitOutcome>> {
    const context = this.#context;
    const parts = { config: this.#config, context, tally: this.#tally, texts: this.#texts, signal };
    const places = [...Map.groupBy(workers, ({ placement }) => placement)];
    // Side by side: a schedd that hangs delays only its own.
    const outcomes = await pMap(places, ([placement, some]) =>
      new Submission({ ...parts, schedd: this.#scheddAt(placement) }).submit(some),
    );
    return new Map(outcomes.flatMap((ofSchedd) => [...ofSchedd]));
  }

  async find(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, FindOutcome>> {
    const { clock } = this.#context;
    const outcomes = new Map<number, FindOutcome>();
    const places = [...Map.groupBy(workers, ({ placement }) => placement)];
    await pMap(places, async ([placement, some]) => {
      for (const [workerId, outcome] of await find(this.#scheddAt(placement), some, clock, signal))
        outcomes.set(workerId, outcome);
    });
    return outcomes;
  }

  rehearse(worker: WorkerToStart, signal: AbortSignal): Promise<readonly DefinitionProblem[]> {
    const schedds = this.#schedds.map((named) => this.#scheddAt(connectionName(named)));
    return rehearse(schedds, worker, (schedd, stage) => this.#texts.texts(schedd, worker, stage), {
      signal,
      now: this.#context.clock.now(),
    });
  }

  render(worker: WorkerToStart): Promise<Rendered> {
    const { queue } = this.#context;
    const schedd = this.#scheddAt(worker.placement);
    return renderText(this.#texts, this.#config, { schedd, queue }, worker);
  }

  async credentials(): Promise<readonly NeededCredential[]> {
    const proxy = credentialOf(this.#config);
    const own = proxy === undefined ? [] : [proxy];
    if (tokensOf(this.#config).length === 0) return own;
    const { ces } = cesOf(this.#config);
    const ofCes = new Set<string>();
    const panda = new Set<string>();
    let isOpen = ces.length === 0;
    for (const ce of ces.length === 0 ? [undefined] : ces) {
      const template = await this.#texts.template(ce);
      if (Array.isArray(template)) continue;
      const token = ceTokenOf(this.#config, ce).path;
      // A computing element that takes workers without one keeps the queue open.
      if (token !== undefined && needsCeToken(template.statements)) ofCes.add(token);
      else isOpen = true;
      const server = pandaTokenOf(this.#config);
      if (server !== undefined && needsPandaToken(template.statements)) panda.add(server);
    }
    return [...own, ...panda, ...(isOpen ? [] : [[...ofCes]])];
  }
}

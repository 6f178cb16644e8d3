import { dirname, join, resolve } from 'node:path';
import { ensureDirectory } from '../../../util/files.ts';
import { hostnameFor } from '../../../util/hostname.ts';
import type { Reason } from '../../../worker/reason.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';
import type { Context } from '../../contracts/context.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import { cesOf } from '../place/ce-list.ts';
import type { Rehearsed, Stage } from './rehearsal.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import { hasBundle } from '../payload/bundle.ts';
import { describeBatch, type DescribedBatch, payloadKeysOf } from '../template/describe.ts';
import { type ChosenCe, logSubdirOf } from '../template/placeholders.ts';
import { type CondorTemplate, loadTemplate, problemOf } from '../template/template.ts';
import { checkVariables, passedVariables, variablesOf } from '../template/variables.ts';
import { firstThere, templateFiles } from '../template/which-file.ts';

/** A template with the variables that its `condor_submit` gets beside the usual ones. */
export interface ReadyTemplate extends CondorTemplate {
  readonly environment: Readonly<Record<string, string>>;
}

/** Texts that one queue gives to `condor_submit`. */
export class SubmitTexts {
  readonly #config: HTCondorSubmitterConfig;
  readonly #context: Context;

  /** @param config with absolute paths */
  constructor(config: HTCondorSubmitterConfig, context: Context) {
    this.#config = config;
    this.#context = context;
  }

  /** The texts of a worker: one by each template that may be chosen, with the directories of a rehearsal. */
  async texts(
    schedd: HTCondorSchedd,
    worker: WorkerToStart,
    { accessPoint, logDir }: Stage,
  ): Promise<Rehearsed[]> {
    const { ces } = cesOf(this.#config);
    const staged = new SubmitTexts({ ...this.#config, logDir }, this.#context);
    const staying = worker.accessPoint === undefined ? worker : { ...worker, accessPoint };
    const texts = new Map<string, Rehearsed>();
    for (const ce of ces.length === 0 ? [undefined] : ces) {
      const template = await this.template(ce);
      // `check` has reported already why the template is wrong.
      if (Array.isArray(template)) continue;
      const { file, environment } = template;
      const { description } = staged.describe(schedd, template, [withSample(template, staying)], ce);
      texts.set(file, { file, description, environment, directory: this.#context.configDir });
    }
    return [...texts.values()];
  }

  /** Read anew each time: an operator's edit counts at once, and a broken one stops the queue with its reason. */
  async template(ce: ChosenCe | undefined): Promise<ReadyTemplate | Reason[]> {
    const { configDir, files } = this.#context;
    const choices = templateFiles(this.#config, ce).map((file) => resolve(configDir, file));
    const file = await firstThere(choices, files);
    if (file === undefined) {
      const message = 'the queue names no template: set templateFile, or CEtemplateDir for CEs of a ceList';
      return [{ code: 'preflight', message }];
    }
    const loaded = await loadTemplate(files, file, this.#config);
    const problems = loaded.ok ? refusedVariables(loaded.template) : loaded.problems;
    if (loaded.ok && problems.length === 0) {
      const environment = passedVariables(variablesOf(loaded.template.statements), process.env);
      return { ...loaded.template, environment };
    }
    return problems.map(({ file, line, message }) => ({
      code: 'preflight',
      message: `${file ?? ''}:${line ?? 0}: ${message}`,
    }));
  }

  /** @param workers all with a bundle, or all without */
  describe(
    schedd: HTCondorSchedd,
    template: CondorTemplate,
    workers: readonly WorkerToStart[],
    ce: ChosenCe | undefined,
  ): DescribedBatch {
    const { factoryId, harvesterId, clock, random, queue, configId } = this.#context;
    const factoryLog = schedd.logOfJobs({ spooled: this.#config.useSpool, poolLog: this.#config.eventLog });
    return describeBatch(template, workers, {
      factoryId,
      harvesterId,
      hostname: hostnameFor(this.#config),
      config: this.#config,
      random,
      queue,
      configId,
      // It is read from standard input; this is where Harvester's templates look for the text.
      sdfPath: template.file,
      submissionHost: schedd.submissionHost,
      now: clock.now(),
      ...(factoryLog !== undefined && { factoryLog }),
      ...(ce && { ce }),
      ...(workers.some(hasBundle) && {
        bundleOf: (worker: WorkerToStart) => schedd.bundles.pathOf(worker),
      }),
      outputOf: ({ workerId }: WorkerToStart) => schedd.outputs.pathOf(workerId),
    });
  }

  /** The directory of the hour, for logs and for output of jobs that say no `initialdir`. Made if it is not there. */
  async directory(schedd: HTCondorSchedd): Promise<string> {
    const { clock } = this.#context;
    const directory = join(this.#config.logDir, logSubdirOf(clock.now()));
    const { files } = this.#context;
    await files.run(directory, 'the making of', () => ensureDirectory(directory));
    if (schedd.ownLog !== undefined) await ensureDirectory(dirname(schedd.ownLog));
    return directory;
  }
}

/** Values for a worker that is only shown: a template that names values of a payload cannot be filled without any. */
export function withSample({ statements }: CondorTemplate, worker: WorkerToStart): WorkerToStart {
  const keys = payloadKeysOf(statements);
  if (keys.size === 0 || worker.payload !== undefined) return worker;
  return {
    ...worker,
    payload: { values: Object.fromEntries([...keys].map((key) => [key, `payload.${key}`])) },
  };
}

/** Variables that the template names and that hold secrets: the queue waits until it names them no more. */
function refusedVariables({ file, statements }: CondorTemplate): DefinitionProblem[] {
  const found = checkVariables(statements, process.env).map((finding) => problemOf(finding, file));
  return found.filter(({ severity }) => severity === 'error');
}

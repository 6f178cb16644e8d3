import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ensureDirectory } from '../../../util/files.ts';
import { hostnameFor } from '../../../util/hostname.ts';
import type { Reason } from '../../../worker/reason.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { Context } from '../../contracts/context.ts';
import type { HTCondorHub } from '../hub.ts';
import { cesOf } from '../place/ce-list.ts';
import type { Rehearsed, Stage } from './rehearsal.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import { describeBatch, type DescribedBatch } from '../template/describe.ts';
import { type ChosenCe, logSubdirOf } from '../template/placeholders.ts';
import { type CondorTemplate, loadTemplate } from '../template/template.ts';
import { templateFiles } from '../template/which-file.ts';

/** What one queue gives to `condor_submit`. */
export class SubmitTexts {
  readonly #config: HTCondorSubmitterConfig;
  readonly #context: Context;

  /** @param config with absolute paths */
  constructor(config: HTCondorSubmitterConfig, context: Context) {
    this.#config = config;
    this.#context = context;
  }

  /** What a worker would be submitted with: by each template that may be chosen, and with the directories of a rehearsal. */
  texts(hub: HTCondorHub, worker: Worker, { accessPoint, logDir }: Stage): Rehearsed[] {
    const { ces } = cesOf(this.#config);
    const staged = new SubmitTexts({ ...this.#config, logDir }, this.#context);
    const actor = worker.accessPoint === undefined ? worker : { ...worker, accessPoint };
    const texts = (ces.length === 0 ? [undefined] : ces).flatMap((ce) => {
      const template = this.template(ce);
      // What is wrong with the file was said before.
      if (Array.isArray(template)) return [];
      const { description } = staged.describe(hub, template, [actor], ce);
      return [{ file: template.file, description, directory: this.#context.configDir }];
    });
    return [...new Map(texts.map((text) => [text.file, text])).values()];
  }

  /** Read anew each time: an operator's edit counts at once, and a broken one stops the queue with its reason. */
  template(ce: ChosenCe | undefined): CondorTemplate | Reason[] {
    const files = templateFiles(this.#config, ce).map((file) => resolve(this.#context.configDir, file));
    const [first] = files;
    if (first === undefined) {
      const message = 'the queue names no template: set templateFile, or CEtemplateDir for CEs of a ceList';
      return [{ code: 'preflight', message }];
    }
    const loaded = loadTemplate(files.find((file) => existsSync(file)) ?? first, this.#config);
    if (loaded.ok) return loaded.template;
    return loaded.problems.map(({ file, line, message }) => ({
      code: 'preflight',
      message: `${file ?? ''}:${line ?? 0}: ${message}`,
    }));
  }
  describe(
    hub: HTCondorHub,
    template: CondorTemplate,
    workers: readonly Worker[],
    ce: ChosenCe | undefined,
  ): DescribedBatch {
    const { factoryId, harvesterId, clock, random, queue, configId } = this.#context;
    const factoryLog = hub.logOfJobs({ spooled: this.#config.useSpool });
    return describeBatch(template, workers, {
      ...{
        factoryId,
        harvesterId,
        hostname: hostnameFor(this.#config),
        config: this.#config,
        random,
        queue,
        configId,
      },
      // It is read from standard input; this is where Harvester's templates look for the text.
      sdfPath: template.file,
      submissionHost: hub.submissionHost,
      now: clock.now(),
      ...(factoryLog !== undefined && { factoryLog }),
      ...(ce && { ce }),
    });
  }

  /** The directory of the hour: the logs are there, and what jobs bring back that say no `initialdir`. Made if it is not there. */
  async directory(hub: HTCondorHub): Promise<string> {
    const { clock } = this.#context;
    const directory = join(this.#config.logDir, logSubdirOf(clock.now()));
    await ensureDirectory(directory);
    if (hub.ownLog !== undefined) await ensureDirectory(dirname(hub.ownLog));
    return directory;
  }
}

import pMap from 'p-map';
import { harvesterIdOf } from '../config/settings/machine.ts';
import { makeWorker } from '../agents/submission/worker-maker.ts';
import type { PluginCatalogue, QueueConfig } from '../config/queues/queues.ts';
import { logServerOf } from '../config/settings/log-server.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { DefinitionProblem, Log } from '../plugins/contracts/index.ts';
import type { Clock } from '../util/clock.ts';
import { withDeadline } from '../util/deadline.ts';
import { type Problem, toPointer } from '../util/located.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { messageOf } from '../worker/errors.ts';
import { readFactoryId } from './factory-file.ts';
import { PluginFactory } from './plugin-factory.ts';

export interface RehearsalOptions {
  readonly settings: LoadedSettings;
  readonly catalogue: PluginCatalogue;
  readonly queueFile: string;
  readonly clock: Clock;
  readonly files: OperatorFiles;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Queues asked about side by side. */
const atOnce = 8;
/** A worker of no daemon: ids of real ones are far above. */
const rehearsedId = 1;

/**
 * Asks the backends to judge a worker of each of these queues, without keeping it. By queue; queues whose
 * submitter cannot be asked are left out.
 */
export async function rehearse(
  configs: readonly QueueConfig[],
  options: RehearsalOptions,
): Promise<ReadonlyMap<string, readonly Problem[]>> {
  const { settings, catalogue, clock, files, random, log } = options;
  const { stateDir, values } = settings;
  const factoryId = readFactoryId(settings) ?? values.master.factoryId ?? 'thresher-rehearsal';
  const harvesterId = harvesterIdOf(values.master);
  const parts = { factoryId, harvesterId, stateDir, maxStatusAge: 0, clock, files, random, log };
  const logServer = logServerOf(values);
  const plugins = new PluginFactory(catalogue, { ...parts, logServer });
  const told = new Map<string, readonly Problem[]>();
  const failed = (config: QueueConfig, error: unknown) => {
    const problem = { pointer: '', code: 'server-unknown', message: messageOf(error) } as const;
    told.set(config.name, [toProblem(problem, config.name, options)]);
  };
  const runtimes = configs.flatMap((config) => {
    try {
      return [plugins.runtime(config, 0, true)];
    } catch (error) {
      failed(config, error);
      return [];
    }
  });
  // Each connection keeps to what all of its queues say, such as a rate of requests.
  plugins.run(runtimes);
  await pMap(
    runtimes,
    async ({ config, submitter, messenger, requirements, connected }) => {
      const deadline = {
        clock,
        what: `rehearsal of ${config.name}`,
        signal: options.signal,
        timeoutMs: values.master.pluginTimeout * 1000,
      };
      if (submitter.rehearse === undefined) return;
      try {
        const [placement = ''] = connected.keys();
        const make = { factoryId, harvesterId, config, configId: 0, placement, originKind: config.demand };
        const worker = makeWorker(rehearsedId, { ...make, requirements, messenger });
        const { sources } = catalogue;
        const given = sources.find(({ name }) => name === config.demand)?.payload ?? [];
        const beside = sources.flatMap(({ everyQueue, payload }) => (everyQueue ? payload : []));
        const found = await withDeadline(
          deadline,
          async (signal) => submitter.rehearse?.(worker, signal, given, beside) ?? [],
        );
        told.set(
          config.name,
          found.map((one) => toProblem(one, config.name, options)),
        );
      } catch (error) {
        failed(config, error);
      }
    },
    { concurrency: atOnce },
  );
  return told;
}

function toProblem(
  { pointer, code, message, severity = 'error', file, line = 0 }: DefinitionProblem,
  queue: string,
  { queueFile }: Pick<RehearsalOptions, 'queueFile'>,
): Problem {
  const place =
    file === undefined
      ? { file: queueFile, pointer: `${toPointer([queue, 'submitter'])}${pointer}` }
      : { file, pointer };
  return { ...place, line, severity, code, message, queue };
}

import { isError, type LoadedSettings } from '../../config/settings/settings.ts';
import { readQueueFile } from '../../config/queues/queues.ts';
import { type ExplainedQueue, idleSource } from '../../sources/htcondor-idle/explain.ts';
import type { Problem } from '../../util/located.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { readConfiguration } from '../configuration.ts';

export type IdleQueues =
  | {
      readonly ok: true;
      readonly settings: LoadedSettings;
      /** The queue file. */
      readonly file: string;
      /** Queues whose workers are machines of a pool, and that are ready. */
      readonly queues: readonly ExplainedQueue[];
      /** Names of those that are not ready. */
      readonly notReady: readonly string[];
      /** Names of all queues of the file, whatever their demand. */
      readonly all: readonly string[];
    }
  /** Mistakes for which the settings or the queue file cannot be used. */
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Reads the queues of the settings whose demand is htcondor-idle. It needs no daemon. */
export async function idleQueues(
  config: string,
  stateDir: string | undefined,
  files: OperatorFiles,
): Promise<IdleQueues> {
  const { settings, queueFile, problems } = await readConfiguration(config, stateDir, files);
  if (settings === undefined || queueFile === undefined)
    return { ok: false, problems: problems.filter(isError) };
  const { file, catalogue, options } = queueFile;
  const read = await readQueueFile(file, catalogue, options);
  if (!read.readable) return { ok: false, problems: read.problems.filter(isError) };
  const queues = read.verdicts
    .flatMap(({ config: ready }) => ready ?? [])
    .filter(({ demand }) => demand === idleSource)
    .map(({ name, source, configDir }) => ({ name, configDir, options: source?.config ?? {} }));
  const notReady = read.verdicts
    .filter(({ demand, config: ready }) => demand?.demand === idleSource && ready === undefined)
    .map(({ name }) => name);
  const all = read.verdicts.map(({ name }) => name);
  return { ok: true, settings, file, queues, notReady, all };
}

import { amountRefusal, boundedValue, rangeRefusal } from '../../../clients/htcondor/submit-commands.ts';
import { ThresherError } from '../../../worker/errors.ts';
import { mostOfJob, type WorkerToStart } from '../../../worker/worker.ts';
import type { CheckContext } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { payloadKeyOf } from '../../contracts/placeholders.ts';
import { type Sizes, sizeNames, unsaidSizes } from '../../contracts/sizes.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import { sizesOf } from './placeholders.ts';
import type { Command } from './statements.ts';
import type { CondorTemplate } from './template.ts';

/** Which placeholders a size is behind. Source: Harvester's make_a_jdl. */
export const placeholdersOfSizes: Readonly<Record<keyof Sizes, readonly string[]>> = {
  minRamCount: [
    ...['minRamCount', 'requestRam', 'requestRamBytes', 'requestRamPerCore', 'requestRamBytesPerCore'],
  ],
  maxDiskCount: ['maxDiskCount', 'requestDisk'],
  maxWalltime: [
    ...['maxWalltime', 'requestWalltime', 'requestWalltimeMinute', 'requestCputime', 'requestCputimeMinute'],
  ],
};

/**
 * Sizes that a template asks for and its queue does not say. Each job would be sent with 1 MB, 1 KB or 0 s, and held or
 * removed for it far away; a push queue takes them from its jobs.
 */
export function checkSizes(
  { file, statements }: CondorTemplate,
  { requirements, pull = false }: CheckContext,
): DefinitionProblem[] {
  if (requirements === undefined) return [];
  const named = new Set(statements.flatMap((one) => (one.kind === 'command' ? one.names : [])));
  const asked = Object.fromEntries(
    sizeNames.map((size) => [size, placeholdersOfSizes[size].filter((name) => named.has(name))]),
  );
  return unsaidSizes(asked, requirements, file, pull ? 'error' : 'warning');
}

/**
 * What a worker asks for comes from CRIC, from a queue file or from a request.
 * @throws ThresherError `htcondor-value` for more than one job may ask for (`mostOfJob`)
 */
export function checkAmounts(worker: WorkerToStart, config: HTCondorSubmitterConfig): void {
  const { nCore, minRamCount, maxDiskCount } = worker.requirements;
  const { nCorePerNode, nCoreFactor: factor, requestGpus } = config;
  const sizes = sizesOf(worker, config);
  const ofWorker = 'of the worker, by its request, its queue file or CRIC';
  const times = sizes.nCoreFactor === 1 ? '' : `, times nCoreFactor ${JSON.stringify(factor)} of the queue,`;
  for (const [asked, most, what] of [
    [sizes.nCoreTotal, mostOfJob.cpus, `cores: nCore is ${nCore} ${ofWorker}${times}`],
    [
      sizes.nCorePerNode,
      mostOfJob.cpus,
      `cores: nCorePerNode is ${nCorePerNode ?? nCore} of the queue file or CRIC`,
    ],
    [sizes.requestRam, mostOfJob.memory, `MiB of memory: minRamCount is ${minRamCount} ${ofWorker}${times}`],
    [sizes.requestDisk, mostOfJob.disk, `KiB of disk: maxDiskCount is ${maxDiskCount} MB ${ofWorker}`],
    [sizes.requestGpus, mostOfJob.gpus, `GPUs: requestGpus is ${requestGpus} of the queue file or CRIC`],
  ] as const)
    if (!(asked <= most)) {
      const message = `a job of HTCondor may ask for at most ${most}, and would for ${asked}, ${what}`;
      throw new ThresherError('htcondor-value', message);
    }
}

/**
 * A template may name what it asks for by other values, too: what it has from a payload counts as the payload's own command.
 * @throws ThresherError `htcondor-value` for more than one job may ask for
 */
export function withinRange({ key, names }: Command, text: string): string {
  const isThirdParty = names.some((name) => payloadKeyOf(name) !== undefined) && text.trim() !== '';
  const refusal = isThirdParty ? rangeRefusal(key, text.trim()) : amountRefusal(key, text);
  if (refusal !== undefined) throw new ThresherError('htcondor-value', `${key} of the template: ${refusal}`);
  return isThirdParty ? boundedValue(key, text) : text;
}

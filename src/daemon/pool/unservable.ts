import { dirname } from 'node:path';
import { type DemandExplained, explainDemand, idleSource } from '../../sources/htcondor-idle/explain.ts';
import type { Clock } from '../../util/clock.ts';
import type { Problem } from '../../util/located.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { ThresherError } from '../../worker/errors.ts';
import { idleQueues } from './idle-queues.ts';

export { type DemandExplained, idleSource };

export interface UnservableParts {
  readonly clock: Clock;
  readonly files: OperatorFiles;
}

export type UnservableAnswer =
  | { readonly ok: true; readonly explained: DemandExplained }
  /** Mistakes for which the settings or the queue file cannot be used. */
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Looks at the pool of the settings once, and explains which jobs no queue could ever serve.
 * @throws ThresherError `pool-demand`, `wrong-type`
 */
export async function unservableJobs(
  config: string,
  stateDir: string | undefined,
  { clock, files }: UnservableParts,
  signal: AbortSignal,
): Promise<UnservableAnswer> {
  const read = await idleQueues(config, stateDir, files);
  if (!read.ok) return read;
  const { settings, file, queues, notReady } = read;
  if (queues.length === 0) {
    const why =
      notReady.length === 0
        ? `no queue of ${file} has "demand": {"name": "${idleSource}", ...}`
        : `no queue with the demand ${idleSource} is ready: see \`thresher check-config ${notReady.join(' ')}\``;
    throw new ThresherError('pool-demand', `${why}; there is nothing that jobs could be held against`);
  }
  const written = Object.entries(settings.values.sources[idleSource] ?? {});
  const explained = await explainDemand(
    Object.fromEntries(written.filter(([key]) => key !== 'module')),
    queues,
    { clock, files, configDir: dirname(settings.file) },
    signal,
  );
  return { ok: true, explained };
}

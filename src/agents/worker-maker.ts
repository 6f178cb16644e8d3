import type { QueueConfig } from '../config/queues.ts';
import type { Messenger } from '../plugins/contracts/index.ts';
import { workerName } from '../worker/identity.ts';
import type { Requirements, Worker } from '../worker/worker.ts';

/**
 * What one worker of a queue is like without a job: from the submitter's options, since there is no CRIC to ask.
 * Source: Harvester's SimpleWorkerMaker.
 */
export function requirementsOf(config: QueueConfig): Requirements {
  const options = config.plugins.submitter?.config ?? {};
  const number = (key: string, otherwise: number) => {
    const value = options[key];
    return typeof value === 'number' ? value : otherwise;
  };
  const nCore = number('nCore', 1);
  return {
    nCore,
    minRamCount: number('minRamCount', 0),
    maxDiskCount: number('maxDiskCount', 0),
    maxWalltime: number('maxWalltime', 0),
    resourceType: nCore === 1 ? 'SCORE' : 'MCORE',
    // The PanDA server knows one job type for pull pilots. Source: panda-server's worker_module.
    jobType: 'managed',
    pilotType: 'PR',
    prodSourceLabel: config.options.prodSourceLabel,
  };
}

/** Harvester's `site/resourceType` queues are of the site before the slash. */
export function computingSiteOf(queue: string): string {
  return queue.split('/')[0] ?? queue;
}

export interface MakeWorker {
  readonly factoryId: string;
  readonly harvesterId: string;
  readonly config: QueueConfig;
  readonly configId: number;
  readonly placement: string;
  readonly originKind: string;
  readonly requirements: Requirements;
  readonly messenger: Messenger | undefined;
}

/** An intent, with everything in it that the worker will ever need to know of itself. */
export function makeWorker(workerId: number, make: MakeWorker): Worker {
  const { config, requirements } = make;
  const computingSite = computingSiteOf(config.name);
  const accessPoint = make.messenger?.accessPointOf({
    workerID: workerId,
    harvesterID: make.harvesterId,
    computingSite,
    queueName: config.name,
    siteName: computingSite,
    ...requirements,
  });
  return {
    workerId,
    name: workerName(make.factoryId, workerId),
    queue: config.name,
    computingSite,
    // Nobody outside asked for this very worker, so its id is what makes its origin unique.
    origin: { kind: make.originKind, uid: config.name, index: workerId },
    requirements,
    placement: make.placement,
    configId: make.configId,
    attempt: 1,
    ...(accessPoint === undefined ? {} : { accessPoint }),
  };
}

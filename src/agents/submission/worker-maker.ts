import { pilotTypeOfLabel, usualPilotType } from '../../config/queues/pilot-types.ts';
import { coresOf, type QueueConfig, sizesOf } from '../../config/queues/queues.ts';
import type { WorkerOptions } from '../../config/queues/queue-schema.ts';
import type { Group, Messenger, Request } from '../../plugins/contracts/index.ts';
import { computingSiteOf, workerName } from '../../worker/identity.ts';
import type { Requirements, WorkerToStart } from '../../worker/worker.ts';

/**
 * The requirements of one worker of a queue without a job: from the queue's options, those of CRIC among them. On a unified
 * queue it takes a whole slot; a source names the needs of the others.
 * Source: Harvester's SimpleWorkerMaker.
 */
export function requirementsOf({ worker, options }: QueueConfig): Requirements {
  const nCore = coresOf(worker);
  return {
    nCore,
    // The queue's `walltimeLimit` is not in it: SimpleWorkerMaker does not read that either.
    ...sizesOf(worker),
    resourceType: nCore === 1 ? 'SCORE' : 'MCORE',
    // The PanDA server knows one job type for pull pilots. Source: panda-server's worker_module.
    jobType: 'managed',
    pilotType: usualPilotType,
    prodSourceLabel: options.prodSourceLabel,
  };
}

/**
 * Draws a worker's pilot type: weights are parts of 1000, of their sum where that is more, and the rest is the usual type.
 * Source: Harvester's make_choice_list.
 */
export function drawPilotType({ options }: Pick<QueueConfig, 'options'>, random: () => number): string {
  const weights = Object.entries(options.prodSourceLabelRandomWeightsPermille ?? {}).map(
    ([label, weight]) => [pilotTypeOfLabel[label] ?? usualPilotType, weight] as const,
  );
  const all = Math.max(
    1000,
    weights.reduce((sum, [, weight]) => sum + weight, 0),
  );
  let drawn = random() * all;
  for (const [pilotType, weight] of weights) {
    if (drawn < weight) return pilotType;
    drawn -= weight;
  }
  return usualPilotType;
}

/**
 * How many jobs one worker counts for: `nCoreFactor` is a number, or one by job type (or `Any`) and resource type (or
 * `Undefined`). Source: Harvester's worker_adjuster.
 */
export function coreFactor({ nCoreFactor = 1 }: WorkerOptions, { jobType, resourceType }: JobKind): number {
  if (typeof nCoreFactor === 'number') return nCoreFactor;
  const byType = nCoreFactor[jobType] ?? nCoreFactor.Any ?? {};
  return byType[resourceType] ?? byType.Undefined ?? 1;
}

type JobKind = Pick<Requirements, 'jobType' | 'resourceType'>;

/** Demand that was counted in jobs, in workers that take `nCoreFactor` of them each. A demand of one or more gets at least one. */
export function scaleDemand(groups: readonly Group[], worker: WorkerOptions): Group[] {
  return groups.map((group) => {
    const { count, requirements } = group;
    const scaled = Math.floor(count / coreFactor(worker, requirements));
    return { ...group, count: count >= 1 ? Math.max(1, scaled) : count };
  });
}

export interface MakeWorker {
  readonly factoryId: string;
  readonly harvesterId: string;
  readonly config: QueueConfig;
  readonly configId: number;
  readonly placement: string;
  readonly originKind: string;
  /** The request that names it; absent for a worker that is asked for by its number alone. */
  readonly request?: Request | undefined;
  readonly requirements: Requirements;
  readonly messenger: Messenger | undefined;
}

/** An intent, with everything in it that the worker will ever need to know of itself. */
export function makeWorker(workerId: number, make: MakeWorker): WorkerToStart {
  const { config, requirements, request } = make;
  const { groupId, payload } = request ?? {};
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
    // A counted worker has no name with its source, so its id makes its origin unique.
    origin: { kind: make.originKind, ...(request?.origin ?? { uid: config.name, index: workerId }) },
    requirements,
    placement: make.placement,
    configId: make.configId,
    attempt: 1,
    ...(groupId === undefined ? {} : { groupId }),
    ...(payload === undefined ? {} : { payload }),
    ...(accessPoint === undefined ? {} : { accessPoint }),
  };
}

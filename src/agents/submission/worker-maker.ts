import { pilotTypeOfLabel, usualPilotType } from '../../config/queues/pilot-types.ts';
import { coresOf, type QueueConfig, sizesOf } from '../../config/queues/queues.ts';
import type { WorkerOptions } from '../../config/queues/queue-schema.ts';
import type { Group, Messenger, Request } from '../../plugins/contracts/index.ts';
import { computingSiteOf, workerName } from '../../worker/identity.ts';
import type { Requirements, Worker, WorkerToStart } from '../../worker/worker.ts';

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
  const accessPoint = accessPointOf(make, { workerId, requirements });
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

/** The parts of a queue that decide on the access points of its workers. */
export type AccessPoints = Pick<MakeWorker, 'harvesterId' | 'messenger'> & {
  readonly config: Pick<QueueConfig, 'name'>;
};

/**
 * The access point that a queue's configuration gives a worker, and the only one that thresher makes and removes for it. Undefined where the
 * queue has none.
 */
export function accessPointOf(
  { config, harvesterId, messenger }: AccessPoints,
  { workerId, requirements }: Pick<Worker, 'workerId' | 'requirements'>,
): string | undefined {
  const computingSite = computingSiteOf(config.name);
  return messenger?.accessPointOf({
    workerID: workerId,
    harvesterID: harvesterId,
    computingSite,
    queueName: config.name,
    siteName: computingSite,
    ...insideOneComponent(requirements),
  });
}

/** Requirements may be the words of strangers: as parts of a path they lead into no other directory. */
function insideOneComponent(requirements: Requirements): Requirements {
  const plain = (text: string) =>
    /^\.+$/.test(text) ? text.replaceAll('.', '_') : text.replaceAll('/', '_');
  const { resourceType, jobType, pilotType, prodSourceLabel } = requirements;
  return {
    ...requirements,
    resourceType: plain(resourceType),
    jobType: plain(jobType),
    pilotType: plain(pilotType),
    prodSourceLabel: plain(prodSourceLabel),
  };
}

/**
 * A worker as its mark on a backend's object may make its row. Anyone with rights on the object can edit the mark, and thresher acts on these
 * fields, so that the mark alone does not decide them:
 *
 * - `accessPoint` counts where the queue's configuration gives the same one. Otherwise the worker has none: nothing is made there, and
 *   nothing is removed there.
 * - `computingSite` follows from the queue.
 * - `payloadId` says that the worker has a payload, and not which: payloads are written together with the rows of their workers, so that
 *   a worker without a row has no payload in the database, and the name in its mark is another worker's.
 *
 * @param home the configuration that the worker is followed with; undefined: it runs no more
 */
export function workerOfMark<W extends Worker>(worker: W, home: AccessPoints | undefined): W {
  const { accessPoint, ...others } = worker;
  const isGiven = accessPoint !== undefined && isGivenBy(home, worker);
  return {
    ...(others as W),
    computingSite: computingSiteOf(worker.queue),
    ...(worker.payloadId === undefined ? {} : { payloadId: `lost-${worker.workerId}` }),
    ...(isGiven ? { accessPoint } : {}),
  };
}

/** Whether this configuration gives the worker the access point that it has. */
export function isGivenBy(home: AccessPoints | undefined, worker: Worker): boolean {
  try {
    return home !== undefined && accessPointOf(home, worker) === worker.accessPoint;
  } catch {
    // A messenger of a third party may not know what to do with the words of a mark.
    return false;
  }
}

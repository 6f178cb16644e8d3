import { brief } from '../../util/beginning.ts';
import { similar } from '../../util/nearest.ts';
import { pilotTypeOfLabel, usualLabels, usualPilotType } from './pilot-types.ts';
import type { SourceDefinition } from '../../plugins/contracts/index.ts';
import { coresOf } from './queue-config.ts';
import type { QueueOptions, WorkerOptions } from './queue-schema.ts';
import type { Remark } from './unread-options.ts';

/** States of a queue that PanDA and Harvester know. */
const statuses = ['online', 'offline', 'test', 'standby', 'maintenance', 'brokeroff', 'paused', 'auto'];

/** A status that PanDA does not know: the queue submits nothing, which its operator may not have meant. */
export function doubtfulStatus({ queueStatus }: QueueOptions): Remark[] {
  if (statuses.includes(queueStatus)) return [];
  const right = near(queueStatus, statuses) ?? `it would be one of ${statuses.join(', ')}`;
  const message = `queueStatus is ${brief(JSON.stringify(queueStatus))}, which neither PanDA nor Harvester knows, so nothing is submitted; ${right}`;
  return [remark('queueStatus', message)];
}

const byLabel = 'prodSourceLabelRandomWeightsPermille';

/** Weights of labels that have no pilot type of their own, and of more than all pilots. */
export function doubtfulLabelWeights(options: QueueOptions): Remark[] {
  const weights = options[byLabel] ?? {};
  const known = Object.keys(pilotTypeOfLabel);
  const others = Object.keys(weights).filter((label) => !known.includes(label));
  const sum = Object.values(weights).reduce((all, weight) => all + weight, 0);
  return [
    ...others.map((label): Remark => {
      if (usualLabels.includes(label)) {
        const message = `pilots for the label "${label}" of ${byLabel} are of the usual type ${usualPilotType}, as in Harvester`;
        return remark(byLabel, message, 'notice');
      }
      const right = near(label, known) ?? `there are ${known.join(', ')}`;
      return remark(
        byLabel,
        `${byLabel} has a weight for the label "${label}", which has no pilot type of its own; ${right}`,
      );
    }),
    ...(sum > 1000
      ? [remark(byLabel, `the weights of ${byLabel} are ${sum} together; they are parts of 1000`)]
      : []),
  ];
}

/** A source that counts no jobs asks for workers whether or not there are any. */
export function uncountedJobs(
  { noPilotsWhenNoActiveJobs }: WorkerOptions,
  { mapType, runMode }: Pick<QueueOptions, 'mapType' | 'runMode'>,
  source: Pick<SourceDefinition, 'name' | 'needsServer' | 'stands'> | undefined,
): Remark[] {
  if (noPilotsWhenNoActiveJobs !== true || source === undefined || source.needsServer) return [];
  // A queue that gets no workers at all gets none without jobs either.
  if (source.stands({ mapType, runMode, options: {} }).length > 0) return [];
  const subject = 'submitter.noPilotsWhenNoActiveJobs';
  const message = `${subject} has no effect: demand is ${source.name}, which counts no jobs; name the source of the PanDA server as demand, which gives a queue without activated jobs no workers`;
  const pointer = '/submitter/noPilotsWhenNoActiveJobs';
  return [{ pointer, code: 'option-without-effect', severity: 'warning', message, subject }];
}

/** Harvester gives one core to a worker that nothing orders for a unified queue. Source: its SimpleWorkerMaker. */
export function wholeSlotWithoutOrders(
  { mapType, runMode }: Pick<QueueOptions, 'mapType' | 'runMode'>,
  worker: WorkerOptions,
  knownToCric: boolean | undefined,
): Remark[] {
  const isUnified = knownToCric === true && worker.wholeSlots !== true;
  const cores = coresOf(worker);
  if (!isUnified || mapType !== 'NoJob' || runMode !== 'self' || cores === 1) return [];
  const message = `a worker of this unified queue has the whole slot of ${cores} cores, since its pilot may fetch a job of any size, and one core in Harvester: set runMode to "slave" for workers by the resource types that the PanDA server orders`;
  return [{ pointer: '/runMode', code: 'cric-value-differs', severity: 'notice', message }];
}

function remark(key: string, message: string, severity: Remark['severity'] = 'warning'): Remark {
  return { pointer: `/${key}`, code: 'doubtful-value', severity, message };
}

/** `ofline` is as near to one as to the other. */
function near(word: string, known: readonly string[]): string | undefined {
  const meant = similar(word, known, 2).map((one) => `"${one}"`);
  return meant.length === 0 ? undefined : `did you mean ${meant.join(' or ')}?`;
}

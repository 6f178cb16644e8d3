import { similar } from '../../util/nearest.ts';
import { pilotTypeOfLabel, pilotTypes } from './pilot-types.ts';
import type { QueueOptions, WorkerMakerOptions } from './queue-schema.ts';
import type { Remark } from './unread-options.ts';

/** States of a queue that PanDA and Harvester know. */
const statuses = ['online', 'offline', 'test', 'standby', 'maintenance', 'brokeroff', 'paused', 'auto'];

/** A status that nobody knows: the queue submits nothing, and perhaps nobody meant that. */
export function doubtfulStatus({ queueStatus }: QueueOptions): Remark[] {
  if (statuses.includes(queueStatus)) return [];
  const right = near(queueStatus, statuses) ?? `it would be one of ${statuses.join(', ')}`;
  const message = `queueStatus is ${JSON.stringify(queueStatus)}, which nobody knows, so nothing is submitted; ${right}`;
  return [remark('queueStatus', message)];
}

const byLabel = 'prodSourceLabelRandomWeightsPermille';
const byType = 'pilotTypeRandomWeightsPermille';

/** Weights of labels that have no pilot type of their own, and of more than all pilots. */
export function doubtfulLabelWeights(options: QueueOptions): Remark[] {
  return doubtfulWeights(
    byLabel,
    options[byLabel] ?? {},
    Object.keys(pilotTypeOfLabel),
    (name) => `the label "${name}", which has no pilot type of its own`,
  );
}

/** Weights of pilot types that do not exist, and of more than all pilots. */
export function doubtfulTypeWeights(options: WorkerMakerOptions): Remark[] {
  return doubtfulWeights(
    byType,
    options[byType] ?? {},
    pilotTypes,
    (name) => `the pilot type "${name}", which does not exist`,
  );
}

function doubtfulWeights(
  key: string,
  weights: Readonly<Record<string, number>>,
  known: readonly string[],
  of: (name: string) => string,
): Remark[] {
  const unknown = Object.keys(weights).filter((name) => !known.includes(name));
  const sum = Object.values(weights).reduce((all, weight) => all + weight, 0);
  return [
    ...unknown.map((name) => {
      const right = near(name, known) ?? `there are ${known.join(', ')}`;
      return remark(key, `${key} has a weight for ${of(name)}; ${right}`);
    }),
    ...(sum > 1000 ? [remark(key, `the weights of ${key} are ${sum} together; they are parts of 1000`)] : []),
  ];
}

function remark(pointer: string, message: string): Remark {
  return { pointer, code: 'doubtful-value', severity: 'warning', message };
}

/** `ofline` is as near to one as to the other. */
function near(word: string, known: readonly string[]): string | undefined {
  const meant = similar(word, known, 2).map((one) => `"${one}"`);
  return meant.length === 0 ? undefined : `did you mean ${meant.join(' or ')}?`;
}

import { createHash } from 'node:crypto';
import { withoutEnd } from '../../util/without-end.ts';
import { markedId, type MarkedWorker, markedWorker } from '../../worker/marked.ts';
import type { Worker } from '../../worker/worker.ts';
import type { ObjectMeta } from './state/types.ts';

/** Labels that say whose an object is; what is listed and watched is selected by the first. */
export const factoryLabel = 'thresher/factory';
export const workerIdLabel = 'thresher/worker-id';
export const queueLabel = 'thresher/queue';
/** On a Secret with a proxy its own name, and that of the Secret on the Jobs that need it. */
export const proxySecretLabel = 'thresher/proxy-secret';
/** On the ConfigMap with our starter, and on the Jobs that need it. */
export const starterLabel = 'thresher/pilots-starter';
/** Annotation with everything that makes a worker's row again. */
export const workerAnnotation = 'thresher/worker';
/** Annotation: number of the queue's configuration that the worker was made with. */
export const configAnnotation = 'thresher/config';
/** Annotation: the address of the worker's log, Harvester's `stdOut`. */
export const logAnnotation = 'thresher/stdOut';
/** Annotation of a Pod: which of its containers is the pilot's. */
export const pilotAnnotation = 'thresher/pilot-container';

const labelPattern = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

export function isLabelValue(text: string): boolean {
  return labelPattern.test(text);
}

/**
 * Any text as a label's value: itself where it is one, otherwise what of it can stay and eight digits of its SHA-256, so that
 * "A/B" and "A B" stay apart. The text itself is in the annotation of the same name.
 */
export function labelOf(text: string): string {
  if (isLabelValue(text)) return text;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 8);
  const beginning = text.replace(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 54);
  const kept = withoutEnd(beginning.replace(/^[-_.]+/, ''), '-_.');
  return kept === '' ? digest : `${kept}-${digest}`;
}

/** Enough to make a worker's row again: all of it but the handle. */
export type Identity = Omit<Worker, 'handle'>;

export function marksOf(
  worker: Worker,
  factoryId: string,
): {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
} {
  const { workerId, name, queue, computingSite, origin, requirements } = worker;
  const { placement, configId, attempt, accessPoint, groupId, payloadId } = worker;
  const who = { workerId, name, queue, computingSite, origin, requirements };
  // Key by key: the order of a worker's own keys is not part of it, and the same worker must give the same text.
  const identity = {
    ...who,
    placement,
    configId,
    attempt,
    ...(accessPoint !== undefined && { accessPoint }),
    ...(groupId !== undefined && { groupId }),
    ...(payloadId !== undefined && { payloadId }),
  };
  return {
    labels: {
      [factoryLabel]: labelOf(factoryId),
      [workerIdLabel]: String(worker.workerId),
      [queueLabel]: labelOf(worker.queue),
    },
    annotations: {
      [queueLabel]: worker.queue,
      [configAnnotation]: String(worker.configId),
      [workerAnnotation]: JSON.stringify(identity),
    },
  };
}

export function isOurs(metadata: ObjectMeta | undefined, factoryId: string): boolean {
  return metadata?.labels?.[factoryLabel] === labelOf(factoryId);
}

/** The worker that a Job or Pod of ours is of. */
export function workerIdOf(metadata: ObjectMeta | undefined): number | undefined {
  return markedId(metadata?.labels?.[workerIdLabel]);
}

/**
 * Reads the worker of a Job of ours, or of a Pod of the Job of this name, from its annotation. Undefined where that
 * does not fit its name and label: a copy made by hand carries our marks, and must not be taken for the worker.
 */
export function identityOf(metadata: ObjectMeta | undefined, jobName = metadata?.name): Identity | undefined {
  const read = markedWorker(metadata?.annotations?.[workerAnnotation]);
  if (read === undefined || !isIdentity(read)) return undefined;
  return read.name === jobName && read.workerId === workerIdOf(metadata) ? read : undefined;
}

function isIdentity(read: MarkedWorker & Readonly<Record<string, unknown>>): read is Identity {
  return typeof read['configId'] === 'number' && typeof read['placement'] === 'string';
}

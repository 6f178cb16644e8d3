import fc from 'fast-check';
import { clampLimits } from '../../src/config/queues/limits.ts';
import { QueueOptions } from '../../src/config/queues/queue-schema.ts';
import type { QueueConfig } from '../../src/config/queues/queues.ts';
import { check } from '../../src/util/schema.ts';
import type { Log, OwnQueue } from '../../src/plugins/contracts/index.ts';
import type { Requirements, Worker } from '../../src/worker/worker.ts';

export const requirements: Requirements = {
  nCore: 1,
  minRamCount: 2000,
  maxDiskCount: 0,
  maxWalltime: 3600,
  resourceType: 'SCORE',
  jobType: 'managed',
  pilotType: 'PR',
  prodSourceLabel: 'managed',
};

/** Texts as every database gives them back. */
export const textsOfRows = fc
  .string({ unit: 'binary' })
  .map((text) => text.toWellFormed().replaceAll('\0', ' '));

/** A worker of queue Q as it is when its intent is written. */
export function workerOf(workerId: number, changes: Partial<Worker> = {}): Worker {
  const queue = changes.queue ?? 'Q';
  return {
    workerId,
    name: `factory-${workerId}`,
    queue,
    computingSite: queue,
    origin: { kind: 'fill', uid: queue, index: workerId },
    requirements,
    placement: 'local:/work',
    configId: 1,
    attempt: 1,
    ...changes,
  };
}

/** A queue as its own source sees it. */
export function ownQueue(name: string, changes: Partial<OwnQueue> = {}): OwnQueue {
  return { name, mapType: 'NoJob', runMode: 'self', requirements, options: {}, configDir: '/', ...changes };
}

export interface RecordedLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A log that keeps its lines. */
export function recordingLog(): Log & { readonly lines: RecordedLine[] } {
  const lines: RecordedLine[] = [];
  const write =
    (level: keyof Log) =>
    (message: string, facts: Readonly<Record<string, unknown>> = {}) => {
      lines.push({ level, message, facts });
    };
  return { lines, debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** A queue that says this, read as a queue file is; `changes` are sections beside its own options. */
export function configOf(
  name: string,
  written: Readonly<Record<string, unknown>>,
  changes: Partial<QueueConfig> = {},
): QueueConfig {
  const options = check(QueueOptions, { mapType: 'NoJob', ...written });
  if (!options.ok) throw new Error(JSON.stringify(options.problems));
  return {
    name,
    options: options.value,
    limits: clampLimits(options.value),
    demand: 'fill',
    configDir: '/etc',
    worker: {},
    workerMaker: {},
    plugins: {},
    ...changes,
  };
}

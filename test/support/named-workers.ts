import type { Payload } from '../../src/worker/payload.ts';
import type { WorkerToStart } from '../../src/worker/worker.ts';
import { workerOf } from './samples.ts';

/** A worker that the source `toy` named: the first of `uid`, unless `changes` say otherwise. */
export function namedWorker(
  workerId: number,
  uid: string,
  changes: Partial<WorkerToStart> = {},
): WorkerToStart {
  return { ...workerOf(workerId, { origin: { kind: 'toy', uid, index: 0 } }), ...changes };
}

/** A secret of this length that stands nowhere else. */
export function secretText(length: number): string {
  return 'SecretOfTheTest'.padEnd(length, 'SecretOfTheTest');
}

/** The secret is kept as base64, as it would be in a file. */
export function secretPayload(secret: string): Payload {
  return {
    env: { MODE: 'test' },
    files: [
      { name: 'run.sh', mode: 0o755, content: Buffer.from('echo hello').toString('base64') },
      { name: 'token', mode: 0o600, content: Buffer.from(secret).toString('base64'), secret: true },
      { name: 'empty', mode: 0o600, content: '', secret: true },
    ],
  };
}

/** Judges one fetched file in a thread of its own: the JSON of a large one would hold the daemon for a while. */
import { parentPort, workerData } from 'node:worker_threads';
import { rememberSecret } from '../../util/own-secrets.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { type Asked, takeFile } from './forms.ts';

interface Given {
  readonly bytes: Uint8Array;
  readonly asked: Asked;
  /** Those of the daemon. */
  readonly secrets: readonly string[];
}

const { bytes, asked, secrets } = workerData as Given;
for (const secret of secrets) rememberSecret(secret);
try {
  const taken = takeFile(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), asked);
  parentPort?.postMessage(taken);
} catch (error) {
  const code = error instanceof ThresherError ? error.code : 'cache-form';
  parentPort?.postMessage({ code, message: messageOf(error) });
}

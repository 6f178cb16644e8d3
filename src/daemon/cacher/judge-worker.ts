/** Judges one fetched file in a thread of its own: the JSON of a large one would hold the daemon for a while. */
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { type Asked, takeFile } from './forms.ts';

const { bytes, asked } = workerData as { readonly bytes: Uint8Array; readonly asked: Asked };
try {
  const taken = takeFile(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), asked);
  parentPort?.postMessage(taken);
} catch (error) {
  const code = error instanceof ThresherError ? error.code : 'cache-form';
  parentPort?.postMessage({ code, message: messageOf(error) });
}

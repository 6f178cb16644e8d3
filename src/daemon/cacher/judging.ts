import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ErrorCode } from '../../codes/codes.ts';
import { ownSecrets } from '../../util/own-secrets.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { type Asked, type Taken, takeFile } from './forms.ts';

/** Smaller files are judged at once, bytes: a thread takes longer to begin. */
const threadFrom = 512 * 1024;
/** For the largest file, with the bounds of forms.ts. */
const mostMemoryMb = 1024;

type Answer =
  | (Omit<Taken, 'kept'> & { readonly kept: Uint8Array })
  | { readonly code: ErrorCode; readonly message: string };

/** Judges a fetched file; a large one in a thread of its own. @throws ThresherError `cache-form`, `cache-shrunk` */
export async function judgeFile(bytes: Buffer, asked: Asked): Promise<Taken> {
  if (bytes.length < threadFrom) return takeFile(bytes, asked);
  const answer = await new Promise<Answer>((resolve, reject) => {
    // The sources have another extension than what is built of them.
    const worker = new Worker(new URL(`./judge-worker${extname(import.meta.filename)}`, import.meta.url), {
      workerData: { bytes, asked, secrets: ownSecrets() },
      resourceLimits: { maxOldGenerationSizeMb: mostMemoryMb },
    });
    worker.once('message', resolve);
    worker.once('error', (error) => {
      reject(new ThresherError('cache-form', `${asked.name} cannot be read: ${messageOf(error)}`));
    });
    worker.once('exit', () => {
      reject(new ThresherError('cache-form', `${asked.name} cannot be read: its reader ended`));
    });
  });
  if ('code' in answer) throw new ThresherError(answer.code, answer.message);
  const { kept } = answer;
  return { ...answer, kept: Buffer.from(kept.buffer, kept.byteOffset, kept.byteLength) };
}

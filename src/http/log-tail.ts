import type { LogReader, LogRequest } from '../plugins/contracts/index.ts';
import type { WorkerRecord } from '../store/rows.ts';
import { withDeadline } from '../util/deadline.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import type { Served } from './served.ts';

export interface TailRequest {
  readonly stream: LogRequest['stream'];
  /** Lines. */
  readonly tail: number;
  /** No more than so many bytes of them, the last ones. */
  readonly maxBytes: number;
  /** ms. */
  readonly timeout: number;
}

export interface Tail {
  readonly bytes: Buffer;
  /** Whether the beginning was left out. */
  readonly cut: boolean;
}

/** Reads of one connection at a time: one that never comes back must not be followed by others, nor take all of Node's threads. */
const atOnce = 2;

/** Reads the ends of workers' logs: bounded in bytes, in time, and in how many of them hang on a dead backend. */
export class LogTails {
  readonly #served: Pick<Served, 'clock' | 'logsOf'>;
  readonly #underWay = new Map<string, number>();

  constructor(served: Pick<Served, 'clock' | 'logsOf'>) {
    this.#served = served;
  }

  /** @throws ThresherError `no-log`, `log-busy`, `plugin-timeout`, `plugin-failed` */
  async read(worker: WorkerRecord, request: TailRequest, signal: AbortSignal): Promise<Tail> {
    const { placement, workerId } = worker;
    const underWay = this.#underWay.get(placement) ?? 0;
    if (underWay >= atOnce) {
      const message = `${underWay} log reads from ${placement} are under way; none of them has come back yet`;
      throw new ThresherError('log-busy', message, { placement });
    }
    const what = `log of worker ${workerId}`;
    const deadline = { clock: this.#served.clock, what, timeoutMs: request.timeout, signal };
    return withDeadline(deadline, async (end) => {
      this.#underWay.set(placement, (this.#underWay.get(placement) ?? 0) + 1);
      try {
        return await collect(await this.#served.logsOf(worker), worker, request, end);
      } catch (error) {
        if (error instanceof ThresherError) throw error;
        const message = `${what} could not be read: ${messageOf(error)}`;
        throw new ThresherError('plugin-failed', message, { workerId }, { cause: error });
      } finally {
        // Only now, since a read that ignores its signal goes on in the background.
        const left = (this.#underWay.get(placement) ?? 1) - 1;
        if (left > 0) this.#underWay.set(placement, left);
        else this.#underWay.delete(placement);
      }
    });
  }
}

async function collect(
  reader: LogReader,
  worker: WorkerRecord,
  { stream, tail, maxBytes }: TailRequest,
  signal: AbortSignal,
): Promise<Tail> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  let cut = false;
  for await (const piece of reader.read(worker, { stream, tail, follow: false }, signal)) {
    if (signal.aborted) break;
    pieces.push(piece);
    size += piece.length;
    // Drops pieces that lie wholly before the end to keep.
    for (let first = pieces[0]; first && size - first.length >= maxBytes; first = pieces[0]) {
      size -= first.length;
      pieces.shift();
      cut ||= first.length > 0;
    }
  }
  const bytes = Buffer.concat(pieces);
  if (!cut && bytes.length <= maxBytes) return { bytes, cut };
  return { bytes: wholeLines(bytes.subarray(Math.max(0, bytes.length - maxBytes))), cut: true };
}

/** Without the rest of a line at the beginning; of one endless line, without the rest of a character. */
function wholeLines(bytes: Buffer): Buffer {
  const newline = bytes.indexOf(0x0a);
  if (newline >= 0 && newline < bytes.length - 1) return bytes.subarray(newline + 1);
  let at = 0;
  while (at < bytes.length && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++;
  return bytes.subarray(at);
}

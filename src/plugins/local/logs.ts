import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import type { FileLane } from '../../util/file-lane.ts';
import { NotPlainFile } from '../../util/plain-file.ts';
import { ThresherError, toReason } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Log } from '../contracts/context.ts';
import type { LogReader, LogRequest } from '../contracts/log-reader.ts';
import type { LocalHost } from './host.ts';

const pieceSize = 64 * 1024;
/** The end of a log is looked for in so many bytes at most: lines may be longer than any log should be. */
const longestTail = 64 * 2 ** 20;
/** How often a followed file is looked at, ms. */
const followInterval = 200;

export class LocalLogs implements LogReader {
  readonly #host: LocalHost;
  readonly #clock: Clock;
  readonly #log: Log;

  constructor(host: LocalHost, clock: Clock, log: Log) {
    this.#host = host;
    this.#log = log;
    this.#clock = clock;
  }

  async *read(worker: Worker, request: LogRequest, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const { lane, directory } = this.#host;
    const { workerId } = worker;
    const path = join(directory.path(workerId), request.stream);
    await this.#host.root.require();
    const file = await directory.openLog(workerId, request.stream).catch((error: unknown) => {
      // A pilot may put anything in the place of its log.
      if (error instanceof NotPlainFile)
        throw new ThresherError('no-log', `${path} of worker ${workerId} is no plain file`);
      throw error;
    });
    if (file === undefined)
      throw new ThresherError('no-log', `worker ${workerId} has no ${request.stream} at ${path}`);
    const what = `reading ${path}`;
    const read: ReadAt = (position, length) =>
      lane.run(what, async () => {
        const piece = Buffer.allocUnsafe(length);
        const { bytesRead } = await file.read(piece, 0, length, position);
        return piece.subarray(0, bytesRead);
      });
    try {
      const { size } = await lane.run(what, () => file.stat());
      let position = request.tail === undefined ? 0 : await startOfTail(read, size, request.tail, signal);
      while (!signal.aborted) {
        // Asked before reading: what a worker wrote last is read after it was seen to have ended.
        const over = !request.follow || (await this.#host.look(worker)).kind !== 'running';
        for (;;) {
          const piece = await read(position, pieceSize);
          if (piece.length === 0) break;
          position += piece.length;
          yield piece;
        }
        if (over) return;
        await this.#clock.sleep(followInterval, signal);
      }
    } finally {
      await close(file, lane, this.#log);
    }
  }
}

/** Bytes from a position on, as many as there are. */
type ReadAt = (position: number, length: number) => Promise<Buffer>;

/** The position at which the last `lines` lines begin. */
async function startOfTail(read: ReadAt, size: number, lines: number, signal: AbortSignal): Promise<number> {
  const first = Math.max(0, size - longestTail);
  let end = size;
  let missing = lines;
  let last = true;
  while (end > first && !signal.aborted) {
    const start = Math.max(first, end - pieceSize);
    const piece = await read(start, end - start);
    for (let at = piece.length - 1; at >= 0; at--) {
      // The newline that ends the last line begins no further one.
      if (piece[at] === 0x0a && !last && --missing === 0) return start + at + 1;
      if (piece[at] === 0x0a && last && lines === 0) return start + at + 1;
      last = false;
    }
    end = start;
  }
  return end;
}

/** A disk that hangs keeps the file until it answers: the close goes on, and the reader does not wait for that. */
async function close(file: FileHandle, lane: FileLane, log: Log): Promise<void> {
  const tell = (error: unknown) => {
    log.warn('a log of a worker could not be closed', { ...toReason(error) });
  };
  const closed = async (): Promise<boolean> => {
    try {
      // A second call of a close that is under way waits for the first.
      await lane.run('closing a log', () => file.close());
    } catch (error) {
      if (error instanceof ThresherError && error.code === 'file-timeout') return false;
      tell(error);
    }
    return true;
  };
  const goOn = async () => {
    while (!(await closed()));
  };
  if (!(await closed())) goOn().catch(tell);
}

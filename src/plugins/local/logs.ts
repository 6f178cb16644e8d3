import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import { hasCode } from '../../util/files.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { LogReader, LogRequest } from '../contracts/log-reader.ts';
import type { LocalHost } from './host.ts';

const pieceSize = 64 * 1024;
/** Without waiting for a pipe's other end, and never through a symbolic link. */
const readPlainly = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
/** The end of a log is looked for in so many bytes at most: lines may be longer than any log should be. */
const longestTail = 64 * 2 ** 20;
/** How often a followed file is looked at, ms. */
const followInterval = 200;

export class LocalLogs implements LogReader {
  readonly #host: LocalHost;
  readonly #clock: Clock;

  constructor(host: LocalHost, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
  }

  async *read(worker: Worker, request: LogRequest, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const path = join(this.#host.directory.path(worker.workerId), request.stream);
    // A pilot may put anything in the place of its log: a pipe or a device would hold the reader, and the daemon's threads.
    const file = await open(path, readPlainly).catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT', 'ELOOP', 'ENXIO')) throw error;
      throw new ThresherError('no-log', `worker ${worker.workerId} has no ${request.stream} at ${path}`);
    });
    try {
      if (!(await file.stat()).isFile())
        throw new ThresherError('no-log', `${path} of worker ${worker.workerId} is no plain file`);
      let position = request.tail === undefined ? 0 : await startOfTail(file, request.tail, signal);
      const piece = Buffer.alloc(pieceSize);
      while (!signal.aborted) {
        // Asked before reading: what a worker wrote last is read after it was seen to have ended.
        const over =
          !request.follow || (await this.#host.look(worker.workerId, worker.attempt)).kind !== 'running';
        for (;;) {
          const { bytesRead } = await file.read(piece, 0, pieceSize, position);
          if (bytesRead === 0) break;
          position += bytesRead;
          yield Uint8Array.from(piece.subarray(0, bytesRead));
        }
        if (over) return;
        await this.#clock.sleep(followInterval, signal);
      }
    } finally {
      await file.close();
    }
  }
}

/** Where the last `lines` lines begin. */
async function startOfTail(
  file: Awaited<ReturnType<typeof open>>,
  lines: number,
  signal: AbortSignal,
): Promise<number> {
  const piece = Buffer.alloc(pieceSize);
  const { size } = await file.stat();
  const first = Math.max(0, size - longestTail);
  let end = size;
  let missing = lines;
  let last = true;
  while (end > first && !signal.aborted) {
    const start = Math.max(first, end - pieceSize);
    const { bytesRead } = await file.read(piece, 0, end - start, start);
    for (let at = bytesRead - 1; at >= 0; at--) {
      // The newline that ends the last line begins no further one.
      if (piece[at] === 0x0a && !last && --missing === 0) return start + at + 1;
      if (piece[at] === 0x0a && last && lines === 0) return start + at + 1;
      last = false;
    }
    end = start;
  }
  return end;
}

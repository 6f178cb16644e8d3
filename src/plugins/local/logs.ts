import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import { hasCode } from '../../util/files.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { LogReader, LogRequest } from '../contracts/log-reader.ts';
import type { LocalHost } from './host.ts';

const pieceSize = 64 * 1024;
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
    const file = await open(path, 'r').catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT')) throw error;
      throw new ThresherError('no-log', `worker ${worker.workerId} has no ${request.stream} at ${path}`);
    });
    try {
      let position = request.tail === undefined ? 0 : await startOfTail(file, request.tail);
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
async function startOfTail(file: Awaited<ReturnType<typeof open>>, lines: number): Promise<number> {
  const piece = Buffer.alloc(pieceSize);
  let end = (await file.stat()).size;
  let missing = lines;
  let last = true;
  while (end > 0) {
    const start = Math.max(0, end - pieceSize);
    const { bytesRead } = await file.read(piece, 0, end - start, start);
    for (let at = bytesRead - 1; at >= 0; at--) {
      // The newline that ends the last line begins no further one.
      if (piece[at] === 0x0a && !last && --missing === 0) return start + at + 1;
      if (piece[at] === 0x0a && last && lines === 0) return start + at + 1;
      last = false;
    }
    end = start;
  }
  return 0;
}

import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hasCode, makeDirectory } from '../util/files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';

/** How much may wait for a disk that hangs, characters; what comes then is lost. */
const longestQueue = 4_000_000;

/**
 * A log file that may be renamed at any time, as logrotate does: before each write it is looked whether the path still
 * leads to the open file. So a rotation needs no signal, and no line goes to a file that is compressed already.
 * Lines that cannot be written are lost and counted; the daemon never waits for the disk.
 */
export class LogFile {
  readonly #path: string;
  readonly #complain: (message: string) => void;
  #lines: string[] = [];
  #waiting = 0;
  #lost = 0;
  #failing = false;
  #file: FileHandle | undefined;
  #writing: Promise<void> | undefined;

  /** `complain` is told once when the file cannot be written, and when it can again. */
  constructor(path: string, complain: (message: string) => void) {
    this.#path = path;
    this.#complain = complain;
  }

  /** Takes lines with their ends. */
  write(lines: string): void {
    if (this.#waiting + lines.length > longestQueue) {
      this.#lost++;
      return;
    }
    this.#lines.push(lines);
    this.#waiting += lines.length;
    this.#writing ??= this.#writeAll();
  }

  /** Closes the file when all lines are written, or lost. A later line opens it again. */
  async close(): Promise<void> {
    await this.#writing;
    await this.#release();
  }

  async #writeAll(): Promise<void> {
    while (this.#lines.length > 0) {
      const batch = this.#lines;
      this.#lines = [];
      try {
        const file = await this.#current();
        await file.appendFile(batch.join(''));
        if (this.#lost > 0) this.#complain(`${this.#lost} lines of the log ${this.#path} were lost`);
        this.#lost = 0;
        this.#failing = false;
      } catch (error) {
        this.#lost += batch.length;
        // An error of the file itself may stay with its handle, as on a network disk that came back.
        await this.#release();
        if (!this.#failing) this.#complain(`the log ${this.#path} cannot be written: ${messageOf(error)}`);
        this.#failing = true;
      }
      this.#waiting = this.#lines.reduce((sum, { length }) => sum + length, 0);
    }
    // Here and not when the promise is settled: a line that came in between would wait for the next one.
    this.#writing = undefined;
  }

  /** The file that the path leads to. */
  async #current(): Promise<FileHandle> {
    const place = await identity(() => stat(this.#path, { bigint: true }));
    const own = this.#file;
    if (own !== undefined && place !== undefined) {
      if (place === (await identity(() => own.stat({ bigint: true })))) return own;
    }
    await this.#release();
    if (place === undefined) makeDirectory(dirname(this.#path));
    this.#file = await open(this.#path, 'a', 0o640);
    return this.#file;
  }

  async #release(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    try {
      await file?.close();
    } catch (error) {
      this.#complain(`the log ${this.#path} cannot be closed: ${messageOf(error)}`);
    }
  }
}

/**
 * Opens the log file once, so that a daemon does not start that would log nowhere. A full disk is no reason: it costs lines.
 * @throws ThresherError `log-file-unusable`
 */
export async function requireLogFile(path: string): Promise<void> {
  try {
    makeDirectory(dirname(path));
    await (await open(path, 'a', 0o640)).close();
  } catch (error) {
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) return;
    const message = `log.file ${path} cannot be opened: ${messageOf(error)}; name a file that the daemon may write`;
    throw new ThresherError('log-file-unusable', message, { path }, { cause: error });
  }
}

async function identity(look: () => Promise<{ dev: bigint; ino: bigint }>): Promise<string | undefined> {
  try {
    const { dev, ino } = await look();
    return `${dev}:${ino}`;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

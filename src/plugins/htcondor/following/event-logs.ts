import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  endOfLog,
  type LogPosition,
  type LogRead,
  readLog,
} from '../../../clients/htcondor/event-log-file.ts';
import { excerptLength } from '../../../clients/htcondor/event-log.ts';
import type { JobEvent } from '../../../clients/htcondor/event-types.ts';
import { beginningFromOutside } from '../../../util/beginning.ts';
import { type Clock } from '../../../util/clock.ts';
import type { FileLane } from '../../../util/file-lane.ts';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../../util/files.ts';
import { NotPlainFile, readPlainFile } from '../../../util/plain-file.ts';
import { messageOf } from '../../../worker/errors.ts';
import type { Log } from '../../contracts/context.ts';

export interface EventLogsParts {
  /** Keeps how far they were read. */
  readonly positionsFile: string;
  readonly clock: Clock;
  /** For all that is read and written here. */
  readonly files: FileLane;
}

export interface FollowedLog {
  readonly path: string;
  /** Written for this factory alone: no other reader needs what was read of it. */
  readonly own: boolean;
}

interface Followed {
  readonly own: boolean;
  position: LogPosition | undefined;
  /** False until it is known at which position to begin. */
  begun: boolean;
  /** The last failure, so that it is told of once. */
  failure?: string;
  /** Records that could not be read since that was told of, and when it was, monotonic ms. */
  untold: number;
  toldAt?: number;
}

/** Takes in what a log said, a piece after the other: a log of days has more events than one call may hold. */
export type TakeEvents = (events: readonly JobEvent[]) => void;

/** bytes: HTCondor itself never cuts or rotates a `dagman_log`. */
const longestOwn = 32 * 1024 * 1024;
/** How often it is told of records that cannot be read, at most, ms. */
const tellInterval = 60_000;
/** bytes: positions of a thousand logs */
const longestPositions = 1024 * 1024;

/**
 * The logs in which one schedd writes what becomes of our jobs. How far they were read is kept, so that a daemon that
 * was down learns of jobs that the schedd has forgotten by then.
 */
export class EventLogs {
  readonly #parts: EventLogsParts;
  readonly #followed = new Map<string, Followed>();
  #kept: Readonly<Record<string, LogPosition>> | undefined;
  /** Positions to be kept next: those of one look earlier, whose events were dealt with for certain. */
  #dealtWith = new Map<string, LogPosition>();

  constructor(parts: EventLogsParts) {
    this.#parts = parts;
  }

  /** These are read from now on, and no others. */
  follow(logs: readonly FollowedLog[]): void {
    const wanted = new Map(logs.map(({ path, own }) => [path, own]));
    for (const path of this.#followed.keys()) if (!wanted.has(path)) this.#followed.delete(path);
    for (const [path, own] of wanted)
      if (!this.#followed.has(path))
        this.#followed.set(path, { own, begun: false, position: undefined, untold: 0 });
  }

  /** Whether there is any. */
  get any(): boolean {
    return this.#followed.size > 0;
  }

  /**
   * Reads on in all of them. Never fails: what keeps it from that is told of in the log, and is an event missed.
   * @returns whether events are missing among those that were taken: HTCondor must be asked
   */
  async read(log: Log, take: TakeEvents): Promise<boolean> {
    let missed = false;
    for (const [path, followed] of this.#followed) {
      try {
        await this.#begin(path, followed);
        if (await this.#readOn(path, followed, log, take)) missed = true;
        delete followed.failure;
      } catch (error) {
        const failure = messageOf(error);
        if (failure !== followed.failure) {
          missed = true;
          log.warn('a log of job events cannot be read: ends are seen with the next query', {
            file: path,
            error: failure,
          });
        }
        followed.failure = failure;
      }
    }
    return missed;
  }

  /** Keeps how far they had been read when this was called last. @throws what the file system says */
  async keep(): Promise<void> {
    const before = this.#dealtWith;
    this.#dealtWith = new Map(
      [...this.#followed].flatMap(([path, { position }]) =>
        position === undefined ? [] : [[path, position]],
      ),
    );
    if (before.size === 0) return;
    const { positionsFile, files } = this.#parts;
    await files.run(`writing ${positionsFile}`, async () => {
      await ensureDirectory(dirname(positionsFile));
      await writeFileAtomically(positionsFile, `${JSON.stringify(Object.fromEntries(before))}\n`);
    });
  }

  async #begin(path: string, followed: Followed): Promise<void> {
    if (followed.begun) return;
    const { positionsFile, files } = this.#parts;
    this.#kept ??= await files.run(`reading ${positionsFile}`, () => readPositions(positionsFile));
    const end = () => files.run(`reading ${path}`, () => endOfLog(path));
    // All of a log of our own is for us; of the pool's only what comes now.
    followed.position = this.#kept[path] ?? (followed.own ? undefined : await end());
    followed.begun = true;
  }

  async #readOn(path: string, followed: Followed, log: Log, take: TakeEvents): Promise<boolean> {
    let missed = false;
    for (let more = true; more;) {
      const { files, clock } = this.#parts;
      const { position } = followed;
      const read = await files.run(`reading ${path}`, () => readLog(path, position, clock.now()));
      ({ more } = read);
      take(read.events);
      followed.position = read.position;
      if (read.gap || read.garbage.length > 0) missed = true;
      this.#tellGarbage(followed, read.garbage, log);
    }
    if (followed.own && (followed.position?.offset ?? 0) > longestOwn) {
      await this.#parts.files.run(`emptying ${path}`, () => empty(path));
      // Events that were written since the last read are gone with it.
      missed = true;
    }
    return missed;
  }

  /** Users can write as many of them as they like, into the reasons of holds. */
  #tellGarbage(followed: Followed, garbage: LogRead['garbage'], log: Log): void {
    followed.untold += garbage.length;
    const [first] = garbage;
    const now = this.#parts.clock.monotonic();
    if (first === undefined || now < (followed.toldAt ?? -Infinity) + tellInterval) return;
    const { file, at, excerpt } = first;
    log.warn('records in a log of job events cannot be read', {
      records: followed.untold,
      file,
      at,
      excerpt: beginningFromOutside(excerpt, excerptLength),
    });
    followed.untold = 0;
    followed.toldAt = now;
  }
}

/** HTCondor appends, so that it goes on at the beginning. */
async function empty(path: string): Promise<void> {
  // A link in its place leads to a file that is not ours to empty, and a pipe must not hold the thread.
  const file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    await file.truncate();
  } finally {
    await file.close();
  }
}

/** None where they cannot be read: everything that the schedd still knows is seen without them. */
async function readPositions(file: string): Promise<Record<string, LogPosition>> {
  try {
    const { bytes } = await readPlainFile(file, { largest: longestPositions, links: 'refuse' });
    const read: unknown = JSON.parse(bytes.toString('utf8'));
    if (typeof read !== 'object' || read === null) return {};
    return Object.fromEntries(Object.entries(read).filter(([, position]) => isPosition(position)));
  } catch (error) {
    const unusable = error instanceof SyntaxError || error instanceof NotPlainFile;
    if (hasCode(error, 'ENOENT') || unusable) return {};
    throw error;
  }
}

function isPosition(value: unknown): value is LogPosition {
  if (typeof value !== 'object' || value === null) return false;
  const { inode, offset, head, headLength } = value as Record<string, unknown>;
  const numbers = [inode, offset, headLength];
  return numbers.every((one) => Number.isSafeInteger(one) && Number(one) >= 0) && typeof head === 'string';
}

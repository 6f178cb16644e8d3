import type { Stats } from 'node:fs';
import { access, readlink, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { messageOf, ThresherError } from '../worker/errors.ts';
import type { Clock } from './clock.ts';
import { type FileKind, fileKinds } from './file-kinds.ts';
import { FileLane, type Importance, type Lane } from './file-lane.ts';
import { mountOf, readMounts } from './mounts.ts';
import { NotPlainFile, type PlainFile, readPlainFile, readPlainFileSync } from './plain-file.ts';

export interface OperatorFilesOptions {
  readonly clock: Clock;
  /** How long one call may take, ms. */
  readonly timeoutMs?: number;
  /** Mount points, as they are now. */
  readonly mounts?: () => readonly string[];
}

/** An honest network file system answers within a second, also a busy one; queues wait for the others of their file. */
const usualTimeout = 10_000;
/** Calls under way on one file system. Node has four threads for files: two dead mounts leave none, one leaves two. */
const atOnce = 2;
/** How long the list of mounts is used, ms. */
const mountsKept = 5000;
/** Linux follows the same number of links in a row. */
const mostLinks = 40;
/** Paths whose targets are remembered. */
const mostTargets = 10_000;

interface FileSystem {
  readonly lane: FileLane;
  /** Calls that were given up and have not come back. */
  hung: number;
}

/** All of this process, by mount point: a dead one takes its two threads once, whoever asks. Each clock has its own. */
const fileSystems = new WeakMap<Clock, Map<string, FileSystem>>();

/**
 * Reads the files that operators name in configurations: without a pause of the event loop, whole, within the bound of
 * their kind and a deadline. All calls to one file system share a lane, so that a dead mount delays only the queues
 * with a file on it.
 */
export class OperatorFiles {
  /** By which its deadlines go. */
  readonly clock: Clock;
  readonly #timeoutMs: number;
  readonly #listMounts: () => readonly string[];
  /** By path: the same file without symbolic links. */
  readonly #targets = new Map<string, string>();
  #mounts: { readonly at: number; readonly list: readonly string[] } | undefined;

  constructor({ clock, timeoutMs = usualTimeout, mounts = readMounts }: OperatorFilesOptions) {
    this.clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#listMounts = mounts;
  }

  /** @throws NotPlainFile, ThresherError `file-timeout`, or what open(2) and read(2) say */
  read(path: string, kind: FileKind): Promise<PlainFile> {
    return this.run(path, 'reading', () =>
      readPlainFile(path, { largest: fileKinds[kind].largest, links: 'follow' }),
    );
  }

  /**
   * Type of the file at this path; undefined for no file, and for one that this user may not look at. @throws
   * ThresherError `file-timeout`
   */
  stat(path: string): Promise<Stats | undefined> {
    return this.run(path, 'a look at', () => stat(path).catch(() => undefined));
  }

  /** Whether this user may do that (`constants.W_OK`). @throws ThresherError `file-timeout`, or what access(2) says */
  access(path: string, mode: number): Promise<void> {
    return this.run(path, 'a look at', () => access(path, mode));
  }

  /**
   * Any other call about a path.
   * @param what names it: "reading"
   * @throws ThresherError `file-timeout`, or what `call` throws
   */
  run<T>(path: string, what: string, call: () => Promise<T>): Promise<T> {
    return this.laneOf(path).run(`${what} ${path}`, call);
  }

  /** The lane of the file system that a path is on, for work on other files below it, which that work names itself. */
  laneOf(path: string): Lane {
    return { run: (what, call, importance) => this.#runOn(path, what, call, importance) };
  }

  async #runOn<T>(path: string, what: string, call: () => Promise<T>, importance?: Importance): Promise<T> {
    try {
      const mount = mountOf(await this.#target(path), this.#mountsNow());
      return await this.#onFileSystem(mount, path, what, call, importance);
    } catch (error) {
      // A path that hangs may lead elsewhere the next time.
      if (isTimeout(error)) this.#targets.delete(path);
      throw error;
    }
  }

  async #onFileSystem<T>(
    mount: string,
    path: string,
    what: string,
    call: () => Promise<T>,
    importance?: Importance,
  ): Promise<T> {
    const place = this.#fileSystem(mount);
    if (place.hung >= atOnce) {
      const message = `${path} was not looked at: the file system at ${mount} has not answered earlier calls yet`;
      throw new ThresherError('file-timeout', message, { path, mount });
    }
    const progress = { begun: false, over: false, givenUp: false };
    try {
      const watched = async () => {
        progress.begun = true;
        try {
          return await call();
        } finally {
          progress.over = true;
          if (progress.givenUp) place.hung--;
        }
      };
      return await place.lane.run(what, watched, importance);
    } catch (error) {
      if (isTimeout(error) && progress.begun && !progress.over) {
        progress.givenUp = true;
        place.hung++;
      }
      throw error;
    }
  }

  /**
   * The target of a path. Each link is read in the lane of the file system that holds it: `realpath` would hang in the
   * lane of a living one when a link leads to a dead one.
   */
  async #target(path: string): Promise<string> {
    const known = this.#targets.get(path);
    if (known !== undefined) return known;
    const target = await this.#follow(resolve(path), mostLinks);
    if (this.#targets.size >= mostTargets) this.#targets.clear();
    this.#targets.set(path, target);
    return target;
  }

  async #follow(path: string, links: number): Promise<string> {
    const mounts = this.#mountsNow();
    const parts = path.split('/').filter((part) => part !== '');
    let at = '/';
    for (const [index, part] of parts.entries()) {
      const next = join(at, part);
      const mount = mountOf(next, mounts);
      // A mount point is no link, and a look at it asks the file system that is mounted there.
      if (mount === mountOf(at, mounts)) {
        const look = () => readlink(next).catch(() => undefined);
        const link = await this.#onFileSystem(mount, next, `a look at ${next}`, look);
        if (link !== undefined && links > 0)
          return this.#follow(resolve(at, link, ...parts.slice(index + 1)), links - 1);
      }
      at = next;
    }
    return path;
  }

  #fileSystem(mount: string): FileSystem {
    const all = fileSystems.get(this.clock) ?? new Map<string, FileSystem>();
    fileSystems.set(this.clock, all);
    const known = all.get(mount);
    if (known !== undefined) return known;
    const lane = new FileLane({
      clock: this.clock,
      name: `the file system at ${mount}`,
      atOnce,
      timeoutMs: this.#timeoutMs,
    });
    const made = { lane, hung: 0 };
    all.set(mount, made);
    return made;
  }

  #mountsNow(): readonly string[] {
    const now = this.clock.monotonic();
    if (this.#mounts === undefined || now - this.#mounts.at >= mountsKept)
      this.#mounts = { at: now, list: this.#listMounts() };
    return this.#mounts.list;
  }
}

/** The same without a lane, for the command line and for what is read before anything runs. */
export function readOperatorFileSync(path: string, kind: FileKind): PlainFile {
  return readPlainFileSync(path, { largest: fileKinds[kind].largest, links: 'follow' });
}

/** Why a file cannot be read, and what would be right, as the end of a sentence that begins with the file's name. */
export function whyUnreadable(error: unknown, kind: FileKind): string {
  const { called } = fileKinds[kind];
  if (error instanceof NotPlainFile) {
    const what = error.message.slice(error.path.length + 1);
    return error.why === 'too-large'
      ? `it ${what}, and no ${called} is that large: name the right file`
      : `it ${what}: name the file of the ${called}`;
  }
  if (isTimeout(error)) return messageOf(error);
  // Node names the call and the path as well, which stand beside the message already.
  return `cannot read the file: ${messageOf(error).replace(/, \w+( '.*')?$/s, '')}`;
}

function isTimeout(error: unknown): boolean {
  return error instanceof ThresherError && error.code === 'file-timeout';
}

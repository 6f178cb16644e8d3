import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { constants, type BigIntStats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { hasCode } from '../../../util/files.ts';
import { ThresherError } from '../../../worker/errors.ts';

/** Work on files of the output directory, which may be on a file system that hangs. */
export type OnFiles = <T>(what: string, work: () => Promise<T>) => Promise<T>;

/** A name in a directory: text, or bytes where others may have chosen it. */
type Name = string | Buffer;

const asDirectory = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK;
const asNewFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Directories within each other that one removal holds open. */
const deepest = 16;
/** Names of a directory that a removal reads at once. */
const namesAtOnce = 1000;
/** Size of a directory, bytes, up to which all of its names are read at once: some thousands of them. */
const smallDirectory = 128 * 1024;
/** For the names of a larger one, ms: less than a call about a file may take. */
const listingTime = 8000;
/** Files and directories that one removal takes: a user who makes new ones as fast must not keep it busy for ever. */
const mostRemoved = 100_000;

/**
 * A directory that is held open. All that is done by its `path` happens in this very directory, also after a user who may write above
 * it gave its name to a link. Each name in it is one part: no link of a user is followed on the way to anything.
 */
export class HeldDirectory {
  /** Leads to this directory until it is closed. */
  readonly path: string;
  /** The path that it had when it was opened, for messages. */
  readonly #called: string;
  readonly #handle: FileHandle;
  readonly #onFiles: OnFiles;
  /** Calls by `path` that have not come back. */
  #underWay = 0;
  #isOver = false;

  private constructor(handle: FileHandle, called: string, onFiles: OnFiles) {
    this.path = `/proc/self/fd/${handle.fd}`;
    this.#handle = handle;
    this.#called = called;
    this.#onFiles = onFiles;
  }

  /** Opens a directory whose way no other user can change: it may lead through links. @throws what open(2) says */
  static async open(path: string, onFiles: OnFiles, called = path): Promise<HeldDirectory> {
    const handle = await openedInTime(
      (work) => onFiles('opening the directory of outputs', work),
      () => open(path, asDirectory),
    );
    return new HeldDirectory(handle, called, onFiles);
  }

  /**
   * Opens a directory in this one.
   * @throws ThresherError `htcjob-output` for a link or a file of that name, and what open(2) says
   */
  async directory(name: Name): Promise<HeldDirectory> {
    try {
      const handle = await openedInTime(
        (work) => this.run('opening a directory of outputs', work),
        () => open(this.at(name), asDirectory | constants.O_NOFOLLOW),
      );
      return new HeldDirectory(handle, `${this.#called}/${name.toString()}`, this.#onFiles);
    } catch (error) {
      if (hasCode(error, 'ELOOP', 'ENOTDIR')) throw await this.#inTheWay(name);
      throw error;
    }
  }

  /** @throws what mkdir(2) says */
  make(name: string): Promise<void> {
    return this.run('making a directory', () => mkdir(this.at(name), { mode: 0o755 }));
  }

  /** A file that was not there before. The caller closes it. @throws what open(2) says, EEXIST also for a link */
  newFile(name: string, mode: number): Promise<FileHandle> {
    return openedInTime(
      (work) => this.run('making a file', work),
      () => open(this.at(name), asNewFile, mode),
    );
  }

  /** @throws ThresherError `htcjob-output` where another thing has this name than that directory */
  async requireSame(name: string, directory: HeldDirectory): Promise<void> {
    const [mine, found] = [await directory.#facts(), await this.#look(name)];
    if (found?.ino !== mine.ino || found.dev !== mine.dev) throw await this.#inTheWay(name);
  }

  /** Gives what has a name another one, in the same directory or in another. @throws what rename(2) says */
  rename(name: Name, to: HeldDirectory, newName: string): Promise<void> {
    return this.run('renaming an output', () => to.hold(() => rename(this.at(name), to.at(newName))));
  }

  /**
   * Removes what has this name, and all below it. Of a link it removes the name alone.
   * @param most files and directories that it takes
   * @throws ThresherError `htcjob-output` where something was swapped meanwhile, and what the file system says
   */
  remove(name: string, most = mostRemoved): Promise<void> {
    return new Removal(this.#called, most).remove(this, Buffer.from(name));
  }

  /** Removes all that is in it, wherever it has gone. @throws like `remove` */
  empty(): Promise<void> {
    return new Removal(this.#called, mostRemoved).empty(this);
  }

  /** @returns whether the name is gone: else it is that of a directory */
  async unlink(name: Name): Promise<boolean> {
    try {
      await this.run('removing a file', () => unlink(this.at(name)));
    } catch (error) {
      if (hasCode(error, 'EISDIR')) return false;
      if (!hasCode(error, 'ENOENT')) throw error;
    }
    return true;
  }

  /** Removes an empty directory. @throws ThresherError `htcjob-output` for a link or a file of that name, and what rmdir(2) says */
  async removeDirectory(name: Name): Promise<void> {
    try {
      await this.run('removing a directory', () => rmdir(this.at(name)));
    } catch (error) {
      if (hasCode(error, 'ENOTDIR')) throw await this.#inTheWay(name);
      if (!hasCode(error, 'ENOENT')) throw error;
    }
  }

  /** Up to `most` of the names in it, as bytes: other users may have chosen them. */
  names(most: number): Promise<readonly Buffer[]> {
    // Where a file system gives no types of entries, `opendir` asks for each of them, in this thread and by a name in UTF-8.
    return this.run('listing a directory', async () => {
      // A user may put a million names into it, which would take gigabytes and seconds here, each time.
      const { size } = await this.#handle.stat();
      const all = async () => (await readdir(this.path, { encoding: 'buffer' })).slice(0, most);
      if (size <= smallDirectory) return all();
      return firstNames(this.#handle.fd, most).catch((error: unknown) => {
        // Not every image of a container has `find`.
        if (hasCode(error, 'ENOENT')) return all();
        throw error;
      });
    });
  }

  /** Waits until the names in it are on the disk. */
  sync(): Promise<void> {
    return this.run('keeping an output', () => this.#handle.sync());
  }

  /** The path of a name in it. @throws ThresherError `htcjob-output` for one that would lead elsewhere */
  at(name: Name): string | Buffer {
    if (typeof name === 'string') return `${this.path}/${oneName(name, this.#called)}`;
    return Buffer.concat([Buffer.from(`${this.path}/`), name]);
  }

  /** Does something by `path`, in the time that a file system has for it. */
  run<T>(what: string, work: () => Promise<T>): Promise<T> {
    return this.#onFiles(what, () => this.hold(work));
  }

  /** Keeps it open until this has come back. @throws where it is closed: its path may lead elsewhere by now */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    this.#requireOpen();
    this.#underWay++;
    try {
      return await work();
    } finally {
      this.#underWay--;
      if (this.#isOver) await this.close();
    }
  }

  /**
   * Lets it go. A call that was given up may still wait for a thread, and would reach whatever has the number of the descriptor by
   * then: the last such call closes it.
   */
  async close(): Promise<void> {
    this.#isOver = true;
    if (this.#underWay === 0) await this.#handle.close();
  }

  #requireOpen(): void {
    if (this.#isOver) throw new Error(`${this.#called} is no longer open`);
  }

  #facts(): Promise<BigIntStats> {
    return this.run('a look at an output', () => this.#handle.stat({ bigint: true }));
  }

  /** @returns undefined where nothing has this name */
  async #look(name: Name): Promise<BigIntStats | undefined> {
    try {
      return await this.run('a look at an output', () => lstat(this.at(name), { bigint: true }));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  async #inTheWay(name: Name): Promise<ThresherError> {
    const found = kindOf(await this.#look(name));
    const path = JSON.stringify(`${this.#called}/${name.toString()}`.slice(0, 500));
    return new ThresherError(
      'htcjob-output',
      `${path} is ${found}, and not the directory of thresher: it follows no link below outputDir, and touches nothing behind one. Remove what is there`,
    );
  }
}

/** One removal of a directory and all below it, with few open descriptors however deep it is. */
class Removal {
  readonly #called: string;
  /** The directory that is emptied, and names in it of directories that were moved there from the depth. */
  #top: HeldDirectory | undefined;
  readonly #moved: string[] = [];
  readonly #most: number;
  #taken = 0;

  constructor(called: string, most: number) {
    this.#called = called;
    this.#most = most;
  }

  async remove(parent: HeldDirectory, name: Buffer, depth = 0): Promise<void> {
    if (this.#taken++ === this.#most)
      throw new ThresherError(
        'htcjob-output',
        `${this.#called} had more than ${this.#most} files and directories to remove: thresher removes the others when it tries again`,
      );
    if (await parent.unlink(name)) return;
    if (depth === deepest) {
      await this.#moveUp(parent, name);
      return;
    }
    const directory = await parent.directory(name).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    });
    if (directory === undefined) return;
    try {
      await (depth === 0 ? this.empty(directory) : this.#empty(directory, depth));
    } finally {
      await directory.close();
    }
    await parent.removeDirectory(name);
  }

  async empty(top: HeldDirectory): Promise<void> {
    this.#top = top;
    await this.#empty(top, 0);
    for (let name = this.#moved.pop(); name !== undefined; name = this.#moved.pop())
      await this.remove(top, Buffer.from(name), 1);
  }

  async #empty(directory: HeldDirectory, depth: number): Promise<void> {
    let names: readonly Buffer[];
    do {
      names = await directory.names(namesAtOnce);
      for (const name of names) await this.remove(directory, name, depth + 1);
    } while (names.length === namesAtOnce);
  }

  /** To hold all directories of a deep way open would take the descriptors of others. */
  async #moveUp(parent: HeldDirectory, name: Buffer): Promise<void> {
    const top = this.#top ?? parent;
    const newName = `.removed-${randomUUID()}`;
    await parent.rename(name, top, newName);
    this.#moved.push(newName);
  }
}

/** Objects that an older schema let through may have any text as their directory. */
function oneName(name: string, called: string): string {
  if (name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)) return name;
  throw new ThresherError(
    'htcjob-output',
    `${JSON.stringify(name)} is no name of a directory or a file in ${called}: outputs stay below outputDir`,
  );
}

/** Opens a file in the time that it has. One that opens later is closed at once, since its caller has gone. */
async function openedInTime(
  run: (work: () => Promise<FileHandle>) => Promise<FileHandle>,
  call: () => Promise<FileHandle>,
): Promise<FileHandle> {
  let opened: FileHandle | undefined;
  let isGivenUp = false;
  try {
    return await run(async () => {
      opened = await call();
      if (isGivenUp) await opened.close();
      return opened;
    });
  } catch (error) {
    isGivenUp = true;
    await opened?.close();
    throw error;
  }
}

/**
 * The first names of a directory by another program, which has no need to read them all. The program gets the open directory: to begin
 * in it would keep the event loop waiting for a file system that hangs.
 * @throws where that cannot be started, and where it read nothing in its time
 */
async function firstNames(directory: number, most: number): Promise<readonly Buffer[]> {
  const place = '/proc/self/fd/3/';
  const args = [place, '-mindepth', '1', '-maxdepth', '1', '-print0'];
  const options = { cwd: '/', timeout: listingTime, killSignal: 'SIGKILL' } as const;
  const listing = spawn('find', args, { ...options, stdio: ['ignore', 'pipe', 'ignore', directory] });
  const failed = new Promise<never>((_, reject) => {
    listing.once('error', reject);
  });
  const ended = once(listing, 'exit');
  for (const one of [failed, ended]) one.catch(() => undefined);
  const names: Buffer[] = [];
  const read = async () => {
    let rest = Buffer.alloc(0);
    for await (const piece of listing.stdout ?? []) {
      rest = Buffer.concat([rest, piece as Buffer]);
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        names.push(Buffer.from(rest.subarray(place.length, end)));
        rest = rest.subarray(end + 1);
        if (names.length === most) return;
      }
    }
  };
  try {
    await Promise.race([read(), failed]);
    if (names.length > 0) return names;
    const [code] = (await Promise.race([ended, failed])) as [number | null];
    if (code !== 0) throw new Error('the names in a large directory could not be read');
    return names;
  } finally {
    listing.kill('SIGKILL');
  }
}

function kindOf(found: BigIntStats | undefined): string {
  if (found === undefined) return 'gone';
  if (found.isSymbolicLink()) return 'a link';
  if (found.isDirectory()) return 'another directory';
  return found.isFile() ? 'a file' : 'a pipe, socket or device';
}

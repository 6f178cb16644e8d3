import { link } from 'node:fs/promises';
import { basename } from 'node:path';
import { HeldDirectory, type OnFiles } from './directory.ts';
import { TarReader, type TarEntry, WrongArchive } from './tar.ts';

/** Bounds of the output of one job. */
export interface OutputBounds {
  readonly bytes: number;
  /** Files and directories. */
  readonly files: number;
}

/** The files that an archive gave. */
export interface Unpacked {
  readonly files: number;
  /** Entries that are no files and no directories: links, pipes, devices. They are left out. */
  readonly leftOut: number;
}

const longestPart = 255;
const longestPath = 1000;
/** Directories of an output that are held open at the same time. At least two, for the two names of a hard link. */
const mostHeld = 16;

/**
 * Unpacks an archive into a directory that is new and ours, so that nothing in it leads anywhere else: it makes files and
 * directories alone, and no links to other places. No link is followed that a user puts into the place of a directory meanwhile.
 * @throws WrongArchive for an archive that is damaged or over its bounds, ThresherError `htcjob-output` where a directory was swapped, and
 * what the file system says
 */
export async function unpack(
  bytes: AsyncIterable<Uint8Array>,
  directory: string,
  bounds: OutputBounds,
  onFiles: OnFiles = (_, work) => work(),
): Promise<Unpacked> {
  const top = await HeldDirectory.open(directory, onFiles, 'the output');
  const held = new HeldDirectories(top);
  try {
    return await unpackInto(held, new TarReader(bytes), bounds);
  } finally {
    await held.close();
  }
}

async function unpackInto(held: HeldDirectories, reader: TarReader, bounds: OutputBounds): Promise<Unpacked> {
  const made = new Set<string>(['']);
  const files = new Set<string>();
  let [size, leftOut] = [0, 0];

  const makeDirectory = async (path: string): Promise<void> => {
    if (made.has(path)) return;
    await makeDirectory(parentOf(path));
    count();
    await (await held.at(parentOf(path))).make(basename(path));
    made.add(path);
  };
  const isBelowFile = (path: string): boolean => {
    for (let above = parentOf(path); above !== ''; above = parentOf(above)) if (files.has(above)) return true;
    return false;
  };
  const count = () => {
    if (files.size + made.size > bounds.files)
      throw new WrongArchive(`the output has more than the ${bounds.files} files that are kept`);
  };

  for (let entry = await reader.next(); entry !== undefined; entry = await reader.next()) {
    const path = safePath(entry.name);
    if (path === '') continue;
    // The file may have become a directory while tar packed.
    const isInTheWay = files.has(path) || isBelowFile(path);
    if (entry.kind === 'directory' && !isInTheWay) {
      await makeDirectory(path);
      continue;
    }
    if (entry.kind === 'directory' || entry.kind === 'other' || isInTheWay || made.has(path)) {
      leftOut++;
      continue;
    }
    await makeDirectory(parentOf(path));
    size += entry.size;
    if (size > bounds.bytes)
      throw new WrongArchive(`the output has more than the ${bounds.bytes} bytes that are kept`);
    count();
    if (entry.kind === 'hard-link') {
      const target = safePath(entry.linkName);
      if (!files.has(target)) {
        leftOut++;
        continue;
      }
      await linkFile(held, target, path);
    } else await writeFile(reader, entry, await held.at(parentOf(path)), basename(path));
    files.add(path);
  }
  return { files: files.size, leftOut };
}

async function linkFile(held: HeldDirectories, target: string, path: string): Promise<void> {
  const [from, to] = [await held.at(parentOf(target)), await held.at(parentOf(path))];
  await from.run('linking a file', () =>
    to.hold(() => link(from.at(basename(target)), to.at(basename(path)))),
  );
}

async function writeFile(
  reader: TarReader,
  { mode }: TarEntry,
  directory: HeldDirectory,
  name: string,
): Promise<void> {
  const file = await directory.newFile(name, (mode & 0o755) | 0o600);
  try {
    for await (const piece of reader.content())
      await directory.run('writing a file', () => file.writeFile(piece));
    // Once it has its name, an output counts as whole, also after a crash of the machine.
    await directory.run('writing a file', () => file.datasync());
  } finally {
    await file.close();
  }
}

/** The directories of an output that were used last, held open: archives have the files of a directory one after the other. */
class HeldDirectories {
  readonly #top: HeldDirectory;
  /** By path. The last one was used last. */
  readonly #held = new Map<string, HeldDirectory>();

  constructor(top: HeldDirectory) {
    this.#top = top;
  }

  /**
   * The directory at this path, "" for that of the output. It stays open for the next call, too.
   * @throws ThresherError `htcjob-output` where a link or a file is in its place
   */
  async at(path: string): Promise<HeldDirectory> {
    let start = path;
    while (start !== '' && !this.#held.has(start)) start = parentOf(start);
    let directory = this.#use(start);
    const isHeld = directory;
    const close = () => (directory === isHeld ? undefined : directory.close());
    for (const part of path.slice(start.length).split('/').filter(Boolean)) {
      try {
        const next = await directory.directory(part);
        await close();
        directory = next;
      } catch (error) {
        await close();
        throw error;
      }
    }
    if (path !== start) await this.#hold(path, directory);
    return directory;
  }

  async close(): Promise<void> {
    for (const directory of [this.#top, ...this.#held.values()]) await directory.close();
  }

  #use(path: string): HeldDirectory {
    const directory = this.#held.get(path);
    if (directory === undefined) return this.#top;
    this.#held.delete(path);
    this.#held.set(path, directory);
    return directory;
  }

  async #hold(path: string, directory: HeldDirectory): Promise<void> {
    this.#held.set(path, directory);
    const [oldest] = this.#held;
    if (oldest === undefined || this.#held.size <= mostHeld) return;
    this.#held.delete(oldest[0]);
    await oldest[1].close();
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** A path that leads nowhere but below its directory; "" for the directory itself. @throws WrongArchive */
function safePath(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  const isWrong =
    name.startsWith('/') ||
    name.includes('\0') ||
    parts.some((part) => part === '..' || Buffer.byteLength(part) > longestPart) ||
    Buffer.byteLength(name) > longestPath;
  if (isWrong)
    throw new WrongArchive(
      `the name ${JSON.stringify(name.slice(0, 100))} in it leads elsewhere, or is too long`,
    );
  return parts.join('/');
}

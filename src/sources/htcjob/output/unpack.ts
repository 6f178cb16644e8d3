import { link, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
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

/** Work on files of the output directory, which may be on a file system that hangs. */
export type OnFiles = <T>(what: string, work: () => Promise<T>) => Promise<T>;

const longestPart = 255;
const longestPath = 1000;

/**
 * Unpacks an archive into a directory that is new and ours, so that nothing in it leads anywhere else: it makes files and
 * directories alone, and no links to other places.
 * @throws WrongArchive for an archive that is damaged or over its bounds, and what the file system says
 */
export async function unpack(
  bytes: AsyncIterable<Uint8Array>,
  directory: string,
  bounds: OutputBounds,
  onFiles: OnFiles = (_, work) => work(),
): Promise<Unpacked> {
  const reader = new TarReader(bytes);
  const made = new Set<string>(['']);
  const files = new Set<string>();
  let [size, leftOut] = [0, 0];

  const makeDirectory = async (path: string): Promise<void> => {
    if (path === '.' || made.has(path)) return;
    await makeDirectory(dirname(path));
    count();
    await onFiles('making a directory', () => mkdir(join(directory, path), { mode: 0o755 }));
    made.add(path);
  };
  const count = () => {
    if (files.size + made.size > bounds.files)
      throw new WrongArchive(`the output has more than the ${bounds.files} files that are kept`);
  };

  for (let entry = await reader.next(); entry !== undefined; entry = await reader.next()) {
    const path = safePath(entry.name);
    if (path === '') continue;
    if (entry.kind === 'directory') {
      await makeDirectory(path);
      continue;
    }
    if (entry.kind === 'other' || files.has(path) || made.has(path)) {
      leftOut++;
      continue;
    }
    await makeDirectory(dirname(path));
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
      await onFiles('linking a file', () => link(join(directory, target), join(directory, path)));
    } else await writeFile(reader, entry, join(directory, path), onFiles);
    files.add(path);
  }
  return { files: files.size, leftOut };
}

async function writeFile(
  reader: TarReader,
  { mode }: TarEntry,
  path: string,
  onFiles: OnFiles,
): Promise<void> {
  const file = await onFiles('making a file', () => open(path, 'wx', (mode & 0o755) | 0o600));
  try {
    for await (const piece of reader.content()) await onFiles('writing a file', () => file.writeFile(piece));
    // Once it has its name, an output counts as whole, also after a crash of the machine.
    await onFiles('writing a file', () => file.datasync());
  } finally {
    await file.close();
  }
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

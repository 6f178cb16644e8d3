import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, rmdir, stat } from 'node:fs/promises';
import { hasCode } from '../../../util/files.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';
import type { HtcJobSpec, SpecProblem } from '../../../clients/htcjob/resource.ts';
import type { Meta } from '../cluster.ts';
import type { OnFiles } from './unpack.ts';

const asDirectory = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK;

/** Longest `spec.output.directory`, bytes. */
const longest = 200;
const partOfDirectory = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;

/** Parts of the directory of a resource, below the one of the operator. Its UID keeps it from those of other resources. */
export function directoryOf(
  { namespace, name, uid }: Meta,
  { output }: Pick<HtcJobSpec, 'output'>,
): readonly string[] {
  const own = output?.directory === undefined ? [] : output.directory.split('/');
  return [namespace, ...own, `${name.slice(0, 200)}-${uid}`];
}

/** Mistakes in `spec.output` that the schema of the resource lets through, or an older schema let through. */
export function outputProblems(
  { output }: Pick<HtcJobSpec, 'output'>,
  hasPlace: boolean,
): readonly SpecProblem[] {
  if (output === undefined) return [];
  const { directory, files = [] } = output;
  const problem = (at: string, message: string): SpecProblem => ({ at: `/spec/output${at}`, message });
  return [
    ...(hasPlace
      ? []
      : [
          problem(
            '',
            'this operator keeps no output, since outputDir of sources.htcjob is not set: remove spec.output, or ask its administrator',
          ),
        ]),
    ...(directory === undefined || isPlain(directory)
      ? []
      : [
          problem(
            '/directory',
            `the directory is ${JSON.stringify(directory)}; it must be a relative path of at most ${longest} letters, digits, ".", "_" and "-", no part of which begins with "." or "-"`,
          ),
        ]),
    ...files.flatMap((name, index) =>
      isInside(name)
        ? []
        : [
            problem(
              `/files/${index}`,
              `the name is ${JSON.stringify(name)}; it must be a relative path without ".." and control characters, in the directory of the job`,
            ),
          ],
    ),
  ];
}

function isPlain(directory: string): boolean {
  return directory.length <= longest && directory.split('/').every((part) => partOfDirectory.test(part));
}

function isInside(name: string): boolean {
  const parts = name.split('/');
  return (
    name.length <= 1000 &&
    !/[\u0000-\u001f\u007f]/.test(name) &&
    name.isWellFormed() &&
    parts.every((part) => part !== '' && part !== '.' && part !== '..')
  );
}

/**
 * The directory of an operator in which outputs are kept, and perhaps others write. Below it thresher follows no link: each part of a
 * way is opened by itself, through the one before.
 */
export class OutputPlace {
  readonly root: string;
  readonly #onFiles: OnFiles;

  constructor(root: string, onFiles: OnFiles) {
    this.root = root;
    this.#onFiles = onFiles;
  }

  /** @returns whether the output of this name is there, whole */
  async has(parts: readonly string[], name: string): Promise<boolean> {
    const found = await this.#inside(parts, false, (directory) =>
      this.#onFiles('a look at an output', async () => {
        const opened = await open(`${directory}/${name}`, asDirectory | constants.O_NOFOLLOW);
        await opened.close();
        return true;
      }).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) return false;
        throw error;
      }),
    );
    return found ?? false;
  }

  /**
   * Makes the output of this name by `fill`, in a directory that gets its name only when it is whole and on the disk.
   * @throws ThresherError `htcjob-output`, what `fill` throws, and what the file system says
   */
  async make<T>(parts: readonly string[], name: string, fill: (directory: string) => Promise<T>): Promise<T> {
    const made = await this.#inside(parts, true, async (directory, handle) => {
      const partial = `${directory}/.partial-${name}`;
      await this.#remove(partial);
      await this.#onFiles('making an output', () => mkdir(partial, { mode: 0o755 }));
      let filled: T;
      try {
        filled = await fill(partial);
      } catch (error) {
        // A full disk needs the room at once.
        await this.#remove(partial).catch(() => undefined);
        throw error;
      }
      await this.#onFiles('keeping an output', async () => {
        const path = `${directory}/${name}`;
        try {
          await rename(partial, path);
        } catch (error) {
          if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
          // That of an earlier attempt. A daemon that is killed here makes it again.
          await rm(path, { recursive: true, force: true });
          await rename(partial, path);
        }
        await handle.sync();
      });
      return { filled };
    });
    if (made === undefined) throw notThere(this.root, 'it is gone');
    return made.filled;
  }

  /** Removes the directory of a resource, and those above it that are empty then. */
  async remove(parts: readonly string[]): Promise<void> {
    for (let depth = parts.length; depth > 0; depth--) {
      const [name = '', above] = [parts[depth - 1], parts.slice(0, depth - 1)];
      const isOwn = depth === parts.length;
      await this.#inside(above, false, async (directory) => {
        const path = `${directory}/${name}`;
        if (isOwn) await this.#remove(path);
        else
          await this.#onFiles('removing a directory', () => rmdir(path)).catch((error: unknown) => {
            if (!hasCode(error, 'ENOTEMPTY', 'ENOENT', 'EEXIST', 'EBUSY', 'ENOTDIR')) throw error;
          });
      });
    }
  }

  #remove(path: string): Promise<void> {
    return this.#onFiles('removing an output', () => rm(path, { recursive: true, force: true }));
  }

  /** @returns undefined where the way is not there, and is not to be made */
  async #inside<T>(
    parts: readonly string[],
    make: boolean,
    work: (directory: string, handle: FileHandle) => Promise<T>,
  ): Promise<T | undefined> {
    let handle: FileHandle;
    try {
      handle = await this.#onFiles('opening the directory of outputs', () => open(this.root, asDirectory));
    } catch (error) {
      // A directory that is made in the place of one that is not mounted would hide the outputs.
      if (make) throw notThere(this.root, messageOf(error));
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
    try {
      for (const part of parts) {
        const path = `/proc/self/fd/${handle.fd}/${part}`;
        const next = await this.#next(path, make);
        if (next === undefined) return undefined;
        await handle.close();
        handle = next;
      }
      return await work(`/proc/self/fd/${handle.fd}`, handle);
    } finally {
      await handle.close();
    }
  }

  #next(path: string, make: boolean): Promise<FileHandle | undefined> {
    return this.#onFiles('opening a directory of outputs', async () => {
      if (make)
        await mkdir(path, { mode: 0o755 }).catch((error: unknown) => {
          if (!hasCode(error, 'EEXIST')) throw error;
        });
      try {
        return await open(path, asDirectory | constants.O_NOFOLLOW);
      } catch (error) {
        if (!make && hasCode(error, 'ENOENT')) return undefined;
        if (hasCode(error, 'ELOOP', 'ENOTDIR'))
          throw new ThresherError(
            'htcjob-output',
            `a link or a file is in the way below ${this.root}: remove it`,
          );
        throw error;
      }
    });
  }

  /** Why nothing can be kept there; undefined: it is a directory. */
  async trouble(): Promise<string | undefined> {
    try {
      const found = await this.#onFiles('a look at the directory of outputs', () => stat(this.root));
      return found.isDirectory() ? undefined : `${this.root} is no directory`;
    } catch (error) {
      return messageOf(error);
    }
  }
}

function notThere(root: string, why: string): ThresherError {
  return new ThresherError(
    'htcjob-output',
    `the directory ${root} of outputDir cannot be used (${why}): make it, or mount it`,
  );
}

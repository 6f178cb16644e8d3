import { stat } from 'node:fs/promises';
import { hasCode } from '../../../util/files.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';
import { quoted } from '../../../worker/payload-check.ts';
import type { HtcJobSpec, SpecProblem } from '../../../clients/htcjob/resource.ts';
import type { Meta } from '../cluster.ts';
import { HeldDirectory, type OnFiles } from './directory.ts';

/** Parts of the directory of a resource, below the one of the operator. Its UID keeps it from those of other resources. */
export function directoryOf(
  { namespace, name, uid }: Meta,
  { output }: Pick<HtcJobSpec, 'output'>,
): readonly string[] {
  const own = output?.directory === undefined ? [] : output.directory.split('/');
  return [namespace, ...own, `${name.slice(0, 200)}-${uid}`];
}

/** Mistakes in `spec.output` that the schema of the resource lets through, or an older schema let through; `misfitOf` has those of its directory. */
export function outputProblems(
  { output }: Pick<HtcJobSpec, 'output'>,
  hasPlace: boolean,
): readonly SpecProblem[] {
  if (output === undefined) return [];
  const { files = [] } = output;
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
    ...files.flatMap((name, index) =>
      isInside(name)
        ? []
        : [
            problem(
              `/files/${index}`,
              `the name is ${quoted(name)}; it must be a relative path without ".." and control characters, in the directory of the job`,
            ),
          ],
    ),
  ];
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
 * way is opened by itself, through the one before, and what is in a directory is written and removed through the open directory.
 */
export class OutputPlace {
  readonly root: string;
  readonly #onFiles: OnFiles;

  constructor(root: string, onFiles: OnFiles) {
    this.root = root;
    this.#onFiles = onFiles;
  }

  /**
   * @returns whether the output of this name is there, whole
   * @throws ThresherError `htcjob-output` for a link or a file of that name, and where the directory of the operator is not there
   */
  async has(parts: readonly string[], name: string): Promise<boolean> {
    const found = await this.#inside(parts, false, async (directory) => {
      const output = await openIn(directory, name);
      await output?.close();
      return output !== undefined;
    });
    if (found !== undefined) return found;
    const trouble = await this.trouble();
    if (trouble !== undefined) throw notThere(this.root, trouble);
    return false;
  }

  /**
   * Makes the output of this name by `fill`, in a directory that gets its name only when it is whole and on the disk.
   * @param fill gets a path that leads to this directory alone, until it has come back
   * @throws ThresherError `htcjob-output`, what `fill` throws, and what the file system says
   */
  async make<T>(parts: readonly string[], name: string, fill: (directory: string) => Promise<T>): Promise<T> {
    const made = await this.#inside(parts, true, async (directory) => {
      const partialName = `.partial-${name}`;
      await directory.remove(partialName);
      await directory.make(partialName);
      const partial = await directory.directory(partialName);
      try {
        const filled = await this.#fill(directory, partial, partialName, fill);
        await directory.rename(partialName, directory, name).catch(async (error: unknown) => {
          if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
          // That of an earlier attempt. A daemon that is killed here makes it again.
          await directory.remove(name);
          await directory.rename(partialName, directory, name);
        });
        // It may have been swapped in the last moment.
        await directory.requireSame(name, partial);
        await directory.sync();
        return { filled };
      } finally {
        await partial.close();
      }
    });
    if (made === undefined) throw notThere(this.root, 'it is gone');
    return made.filled;
  }

  async #fill<T>(
    directory: HeldDirectory,
    partial: HeldDirectory,
    partialName: string,
    fill: (directory: string) => Promise<T>,
  ): Promise<T> {
    try {
      const filled = await fill(partial.path);
      await directory.requireSame(partialName, partial);
      return filled;
    } catch (error) {
      // A full disk needs the room at once, also that of a directory that a user has moved away.
      const room = partial.empty().then(() => directory.remove(partialName));
      await room.catch(() => undefined);
      throw error;
    }
  }

  /** Removes the directory of a resource, and those above it that are empty then. Where the directory of the operator is away nothing is awaited. */
  async remove(parts: readonly string[]): Promise<void> {
    for (let depth = parts.length; depth > 0; depth--) {
      const [name = '', above] = [parts[depth - 1], parts.slice(0, depth - 1)];
      const isOwn = depth === parts.length;
      await this.#inside(above, false, async (directory) => {
        if (isOwn) await directory.remove(name);
        else
          await directory.removeDirectory(name).catch((error: unknown) => {
            if (!hasCode(error, 'ENOTEMPTY', 'EEXIST', 'EBUSY')) throw error;
          });
      });
    }
  }

  /** @returns undefined where the way is not there, and is not to be made */
  async #inside<T>(
    parts: readonly string[],
    make: boolean,
    work: (directory: HeldDirectory) => Promise<T>,
  ): Promise<T | undefined> {
    let directory: HeldDirectory;
    try {
      directory = await HeldDirectory.open(this.root, this.#onFiles);
    } catch (error) {
      // A directory that is made in the place of one that is not mounted would hide the outputs.
      if (make) throw notThere(this.root, messageOf(error));
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
    try {
      for (const part of parts) {
        const next = make ? await madeIn(directory, part) : await openIn(directory, part);
        if (next === undefined) return undefined;
        await directory.close();
        directory = next;
      }
      return await work(directory);
    } finally {
      await directory.close();
    }
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

async function openIn(directory: HeldDirectory, name: string): Promise<HeldDirectory | undefined> {
  try {
    return await directory.directory(name);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function madeIn(directory: HeldDirectory, name: string): Promise<HeldDirectory> {
  await directory.make(name).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error;
  });
  return directory.directory(name);
}

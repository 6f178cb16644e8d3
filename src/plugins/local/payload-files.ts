import { constants } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { modeOf } from '../../worker/payload-check.ts';
import type { PayloadFile } from '../../worker/payload.ts';
import { within } from './inside.ts';

/** The name, in the directory of a worker, of the directory with the payload of one attempt. */
export function payloadName(attempt: number): string {
  return `payload.${attempt}`;
}

/** The attempt whose payload a directory of this name has. */
export function payloadAttempt(name: string): number | undefined {
  const digits = /^payload\.(\d{1,9})$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** A file, and the parts of its name that are left below the directory that it is written into. */
interface Placed {
  readonly parts: readonly string[];
  readonly file: PayloadFile;
}

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Makes a directory with these files. @throws also if something has its name already */
export async function writeFiles(directory: string, files: readonly PayloadFile[]): Promise<void> {
  await writeBelow(
    directory,
    files.map((file) => ({ parts: file.name.split('/'), file })),
  );
}

/** Each directory is opened before anything is made in it: a link in its place leads nowhere. */
async function writeBelow(directory: string, files: readonly Placed[]): Promise<void> {
  await mkdir(directory);
  const written = await within(directory, false, async (inside) => {
    for (const [name = '', below] of Map.groupBy(files, ({ parts }) => parts[0])) {
      const path = join(inside, name);
      const [first] = below;
      if (first?.parts.length === 1) await writeOne(path, first.file);
      else
        await writeBelow(
          path,
          below.map(({ parts, file }) => ({ parts: parts.slice(1), file })),
        );
    }
    return true;
  });
  if (!written) throw new Error(`${directory} went away while files were written into it`);
}

async function writeOne(path: string, file: PayloadFile): Promise<void> {
  // A file is for its owner alone until it has its mode.
  const opened = await open(path, newFile, 0o600);
  try {
    await opened.writeFile(file.content, 'base64');
    await opened.chmod(modeOf(file));
  } finally {
    await opened.close();
  }
}

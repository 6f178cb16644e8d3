import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Whether an error of the file system has one of these codes ("ENOENT", ...). */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** Like `mkdir -p`. Node's own never comes back below a directory such as /proc, where nothing can be made. */
export function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path, { mode: 0o750 });
}

/** The same without waiting for the file system, and with the mode that umask leaves. @throws what mkdir says */
export async function ensureDirectory(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (hasCode(error, 'EEXIST') && (await stat(path)).isDirectory()) return;
    if (!hasCode(error, 'ENOENT') || dirname(path) === path) throw error;
    await ensureDirectory(dirname(path));
    await mkdir(path).catch((again: unknown) => {
      // Another process was quicker.
      if (!hasCode(again, 'EEXIST')) throw again;
    });
  }
}

/** Replaces a file as a whole: readers see the old or the new content, also after a crash of the machine. */
export async function writeFileAtomically(
  path: string,
  content: string | Uint8Array,
  mode = 0o644,
): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, 'w', mode);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    await syncToDisk(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Waits until a file or directory is on the disk as it is now: a renamed file is only when its directory is. */
export async function syncToDisk(path: string): Promise<void> {
  const opened = await open(path, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

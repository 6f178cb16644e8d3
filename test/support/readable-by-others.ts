import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Paths and contents of all files below a directory that another user of the machine may read. @param except names of files */
export function readableByOthers(directory: string, except = /^$/): string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || except.test(name)) return [];
    if (found.isDirectory()) return (found.mode & 0o011) === 0 ? [] : readableByOthers(path, except);
    return found.isFile() && (found.mode & 0o044) !== 0 ? [`${path}\n${readFileSync(path, 'latin1')}`] : [];
  });
}

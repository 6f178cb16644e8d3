import { readFileSync } from 'node:fs';

/** The mount points of this process. Source: proc_pid_mountinfo(5). Reading it asks none of the file systems. */
export function readMounts(): readonly string[] {
  return parseMounts(readFileSync('/proc/self/mountinfo', 'utf8'));
}

/** Blanks and backslashes of a path are written as octal numbers there. */
export function parseMounts(mountinfo: string): readonly string[] {
  return mountinfo.split('\n').flatMap((line) => {
    const point = line.split(' ')[4];
    if (point === undefined) return [];
    return [
      point.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8))),
    ];
  });
}

/** The mount that a path without links lies on. */
export function mountOf(path: string, mounts: readonly string[]): string {
  let found = '/';
  for (const mount of mounts) {
    const below = path === mount || path.startsWith(mount.endsWith('/') ? mount : `${mount}/`);
    if (below && mount.length > found.length) found = mount;
  }
  return found;
}

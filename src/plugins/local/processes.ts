import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { hasCode } from '../../util/files.ts';

/** A process as the kernel knows it. The pid alone is no identity: it is given to others later. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks after boot, field 22 of /proc/PID/stat. */
  readonly startTicks: number;
  readonly bootId: string;
}

interface Stat {
  readonly state: string;
  readonly group: number;
  readonly startTicks: number;
}

export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** The fields after the command's name, which may hold blanks and brackets itself. Source: proc_pid_stat(5). */
export function parseStat(text: string): Stat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', group: Number(fields[2]), startTicks: Number(fields[19]) };
}

/** Whether this very process lives. A zombie does not: it only waits for a parent that may never look. */
export async function isAlive(id: ProcessId, bootId: string): Promise<boolean> {
  if (id.bootId !== bootId) return false;
  try {
    const stat = parseStat(await readFile(`/proc/${id.pid}/stat`, 'utf8'));
    return stat.startTicks === id.startTicks && stat.state !== 'Z' && stat.state !== 'X';
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return false;
    throw error;
  }
}

/**
 * The living members of these workers' process groups, by group id. A member counts only when its environment carries
 * the worker's own directory: the group id may belong to somebody else once the worker's group is empty.
 * Reads /proc once for all.
 */
export function groupMembers(wanted: ReadonlyMap<number, string>): Map<number, number[]> {
  const members = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    try {
      const stat = parseStat(readFileSync(`/proc/${entry}/stat`, 'utf8'));
      const mark = wanted.get(stat.group);
      if (mark === undefined || stat.state === 'Z' || stat.state === 'X') continue;
      if (!readFileSync(`/proc/${entry}/environ`, 'latin1').split('\0').includes(mark)) continue;
      members.set(stat.group, [...(members.get(stat.group) ?? []), pid]);
    } catch (error) {
      // It ended meanwhile, or is another user's and so none of ours.
      if (!hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) throw error;
    }
  }
  return members;
}

/** Sends a signal; a process that is gone already is fine. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

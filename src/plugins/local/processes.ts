import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { nextTurn } from '../../util/clock.ts';
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
    if (isNoneOfOurs(error)) return hides(id.pid);
    throw error;
  }
}

/** Whether it is there and takes our signals, though `/proc` does not show it: it may have more rights than its user. */
function hides(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Of a process that is gone, or that `/proc`, mounted with `hidepid`, shows to its own user alone: those of workers have the daemon's. */
function isNoneOfOurs(error: unknown): boolean {
  return hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM');
}

/** A worker's process group, by its leader's pid. */
export interface Group {
  /** The environment of its processes carries this: `THRESHER_WORKER_DIR=...`. */
  readonly mark: string;
  readonly leaderStartTicks: number;
}

/**
 * The living processes of these workers, by group id. A group is a worker's when its leader is the very process of the
 * claim, or when one of its members carries the mark: a group's id is not given out again while it has members. All its
 * members count then, also those that cleaned their environment; and so do processes that left the group with the mark.
 */
export async function groupMembers(
  wanted: ReadonlyMap<number, Group>,
  snapshot = takeSnapshot(),
): Promise<Map<number, number[]>> {
  const byMark = new Map([...wanted].map(([group, { mark }]) => [mark, group]));
  const inGroup = new Map<number, number[]>();
  const ours = new Set<number>();
  const escaped = new Map<number, number[]>();
  for (const { pid, stat, mark } of await snapshot()) {
    const group = wanted.get(stat.group);
    const marked = mark === undefined ? undefined : byMark.get(mark);
    if (group !== undefined) append(inGroup, stat.group, pid);
    else if (marked !== undefined) append(escaped, marked, pid);
    const isLeader = pid === stat.group && stat.startTicks === group?.leaderStartTicks;
    if (group !== undefined && (isLeader || marked === stat.group)) ours.add(stat.group);
  }
  const members = new Map<number, number[]>();
  for (const group of wanted.keys()) {
    const pids = [...(ours.has(group) ? (inGroup.get(group) ?? []) : []), ...(escaped.get(group) ?? [])];
    if (pids.length > 0) members.set(group, pids);
  }
  return members;
}

/** A living process that this user may look at, with the mark of the worker that it belongs to. */
export interface Process {
  readonly pid: number;
  readonly stat: Stat;
  readonly mark: string | undefined;
}

/** The processes of one moment. */
export type Snapshot = () => Promise<readonly Process[]>;

/** Reads /proc when it is first asked, and once: a look at many workers needs one snapshot. */
export function takeSnapshot(): Snapshot {
  let processes: Promise<readonly Process[]> | undefined;
  return () => (processes ??= readProcesses());
}

/** ms after which a reader of many processes lets the daemon go on. */
const turn = 10;

/** What programs of a worker have in their environments, before the directory of the worker. */
const marker = Buffer.from('\0THRESHER_WORKER_DIR=');

/** Bytes of an environment that are looked at together; a mark is shorter. */
const pieceSize = 64 * 1024;

/** A worker may have thousands of processes, each with megabytes of environment: of that, the mark alone is kept. */
export async function readProcesses(): Promise<Process[]> {
  const piece = Buffer.alloc(pieceSize);
  const processes: Process[] = [];
  let begun = performance.now();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    if (performance.now() - begun > turn) {
      await nextTurn();
      begun = performance.now();
    }
    try {
      const stat = parseStat(readFileSync(`/proc/${entry}/stat`, 'utf8'));
      if (stat.state === 'Z' || stat.state === 'X') continue;
      const pid = Number(entry);
      processes.push({ pid, stat, mark: markOfProcess(pid, piece) });
    } catch (error) {
      // It ended meanwhile, or is of another user and `/proc` is mounted with `hidepid`, which names it all the same.
      if (!isNoneOfOurs(error)) throw error;
    }
  }
  return processes;
}

/** @param piece is written over. @returns undefined also for processes of other users, and for programs that changed their user */
function markOfProcess(pid: number, piece: Buffer): string | undefined {
  let file: number | undefined;
  try {
    file = openSync(`/proc/${pid}/environ`, 'r');
    // As if another variable were before the first.
    let held = piece.writeUInt8(0, 0);
    for (;;) {
      const read = readSync(file, piece, held, piece.length - held, null);
      held += read;
      const at = piece.subarray(0, held).indexOf(marker);
      const end = at < 0 ? -1 : piece.subarray(0, held).indexOf(0, at + 1);
      if (at >= 0 && (end > 0 || read === 0)) return piece.toString('utf8', at + 1, end > 0 ? end : held);
      if (read === 0) return undefined;
      const kept = at < 0 ? Math.max(0, held - marker.length) : at;
      piece.copyWithin(0, kept, held);
      held -= kept;
    }
  } catch (error) {
    if (hasCode(error, 'EACCES', 'EPERM')) return undefined;
    throw error;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** "NAME=value" each; none of processes of other users, and of programs that changed their user. */
export function readEnvironment(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch (error) {
    if (hasCode(error, 'EACCES', 'EPERM')) return [];
    throw error;
  }
}

function append(map: Map<number, number[]>, key: number, value: number): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}

/** Sends a signal; a process that is gone already is fine. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

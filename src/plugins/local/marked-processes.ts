import { hasCode } from '../../util/files.ts';
import { readEnvironment, takeSnapshot } from './processes.ts';
import { type Marked, parseMarked, workerIdOf } from './worker-files.ts';

/** The variable in which each process of a worker carries the worker's directory. */
const directoryVariable = 'THRESHER_WORKER_DIR';
/** The variable in which it carries what `worker.json` says. */
export const identityVariable = 'THRESHER_WORKER';
const factoryVariable = 'THRESHER_FACTORY';

/** The living processes that carry one worker's mark. */
export interface MarkedProcesses {
  readonly workerId: number;
  readonly pids: readonly number[];
  /** The one that leads a process group, as a worker's shim does; else the oldest. */
  readonly leader: { readonly pid: number; readonly startTicks: number };
}

/** Processes of a worker that are asked for its words: a program may have written over those of each, and have megabytes instead. */
const mostAsked = 20;

interface One {
  readonly pid: number;
  readonly startTicks: number;
  readonly leads: boolean;
}

/** Every worker below `root` that has a living process with its mark, whatever became of its directory. */
export async function markedUnder(
  root: string,
  snapshot = takeSnapshot(),
): Promise<Map<number, MarkedProcesses>> {
  const prefix = `${directoryVariable}=${root}/`;
  const processes = new Map<number, One[]>();
  for (const { pid, stat, mark } of await snapshot()) {
    if (mark?.startsWith(prefix) !== true) continue;
    const workerId = workerIdOf(mark.slice(prefix.length));
    if (workerId === undefined) continue;
    const process = { pid, startTicks: stat.startTicks, leads: pid === stat.group };
    const others = processes.get(workerId);
    if (others === undefined) processes.set(workerId, [process]);
    else others.push(process);
  }
  return new Map([...processes].map(([workerId, some]) => [workerId, marked(workerId, some)]));
}

function marked(workerId: number, processes: readonly One[]): MarkedProcesses {
  const [leader] = processes.toSorted(
    (a, b) => Number(b.leads) - Number(a.leads) || a.startTicks - b.startTicks,
  );
  if (leader === undefined) throw new Error(`worker ${workerId} has no process`);
  const { pid, startTicks } = leader;
  return { workerId, pids: processes.map((one) => one.pid), leader: { pid, startTicks } };
}

/** The words of the processes of a worker. */
export interface Carried {
  /** Undefined: they ended meanwhile, or a program wrote over its environment. */
  readonly factory?: string;
  /** Undefined also for workers that an earlier version started. */
  readonly marked?: Marked;
}

export function carriedBy({ workerId, pids, leader }: MarkedProcesses): Carried {
  let carried: Carried = {};
  for (const pid of [leader.pid, ...pids.slice(0, mostAsked)]) {
    const environment = environmentOf(pid);
    const factory = environment.get(factoryVariable);
    const identity = environment.get(identityVariable);
    const parsed = identity === undefined ? undefined : parseMarked(identity, workerId);
    if (parsed?.ok) return { factory: parsed.value.factory, marked: parsed.value };
    if (factory !== undefined) carried = { factory };
  }
  return carried;
}

function environmentOf(pid: number): Map<string, string> {
  try {
    const lines = readEnvironment(pid);
    return new Map(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return new Map();
    throw error;
  }
}

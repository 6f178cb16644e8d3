import { join } from 'node:path';
import pMap from 'p-map';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { LocalHost, LocalState } from './host.ts';
import { carriedBy, type MarkedProcesses, markedUnder } from './marked-processes.ts';
import { type Snapshot, takeSnapshot } from './processes.ts';
import type { Damage } from './work-directory.ts';
import type { Marked } from './worker-files.ts';

/** A worker of ours and how it is. */
export interface Scanned {
  readonly marked: Marked;
  readonly state: LocalState;
}

export interface Scan {
  readonly workers: readonly Scanned[];
  /** Directories that may hold a worker of ours, and cannot say so. They are left as they are. */
  readonly damaged: readonly Damage[];
}

type One =
  | { readonly kind: 'ours'; readonly scanned: Scanned }
  | { readonly kind: 'damaged'; readonly damage: Damage }
  | { readonly kind: 'other' };

/** Directories read side by side. */
const scansAtOnce = 16;

/**
 * All that is ours in a work directory and among the processes of the machine. A directory that cannot be read spoils no
 * other, and a worker that lives is found by its processes when its directory is gone or damaged.
 * @throws ThresherError `local-root-lost`, `file-timeout`: when it cannot say all
 */
export async function scan(host: LocalHost): Promise<Scan> {
  const names = (await host.root.require()) ? await host.directory.names() : [];
  const snapshot = takeSnapshot();
  const ones = await pMap(names, (name) => scanOne(host, name, snapshot), { concurrency: scansAtOnce });
  const workers = ones.flatMap((one) => (one.kind === 'ours' ? [one.scanned] : []));
  const damaged = new Map(
    ones.flatMap((one) => (one.kind === 'damaged' ? [[one.damage.path, one.damage]] : [])),
  );
  const known = new Set(workers.map(({ marked }) => marked.worker.workerId));
  for (const processes of (await markedUnder(host.directory.root, snapshot)).values()) {
    if (known.has(processes.workerId)) continue;
    const path = host.directory.path(processes.workerId);
    const one = await scanProcesses(host, processes, damaged.get(path), snapshot);
    if (one.kind === 'ours') {
      workers.push(one.scanned);
      damaged.delete(path);
    } else if (one.kind === 'damaged') damaged.set(path, one.damage);
  }
  for (const damage of damaged.values()) host.tellDamage(damage);
  return { workers, damaged: [...damaged.values()] };
}

async function scanOne(host: LocalHost, name: string, snapshot: Snapshot): Promise<One> {
  const path = join(host.directory.root, name);
  try {
    const marked = await host.directory.marked(name);
    if (marked === undefined) return { kind: 'other' };
    if (!marked.ok) return { kind: 'damaged', damage: { path, why: marked.why } };
    if (marked.value.factory !== host.factoryId) return { kind: 'other' };
    const { worker } = marked.value;
    const state = await host.look(worker, snapshot);
    // A listing leaves a worker that ended to the monitor, which has yet to show the end. And a submission that went on
    // meanwhile knows better: it may be at a later attempt than the one read here.
    const over = state.kind === 'ended' || state.kind === 'fenced';
    if (!over && !host.live.has(worker.workerId) && (await host.directory.marked(name)) !== undefined)
      host.keep(marked.value, state.kind === 'running' ? state.claim : undefined);
    return { kind: 'ours', scanned: { marked: marked.value, state } };
  } catch (error) {
    if (error instanceof ThresherError) throw error;
    return { kind: 'damaged', damage: { path, why: messageOf(error) } };
  }
}

/** A worker that has living processes and no directory that says whose it is. */
async function scanProcesses(
  host: LocalHost,
  processes: MarkedProcesses,
  damage: Damage | undefined,
  snapshot: Snapshot,
): Promise<One> {
  const { workerId, leader } = processes;
  // It may have begun since the directories were listed.
  const again = await scanOne(host, String(workerId), snapshot);
  if (again.kind === 'ours') return again;
  if (again.kind === 'other' && (await host.directory.marked(workerId)) !== undefined) return again;
  const { factory = host.factoryId, marked = host.live.get(workerId) } = carriedBy(processes);
  if (factory !== host.factoryId) return { kind: 'other' };
  const path = host.directory.path(workerId);
  const why = damage?.why ?? (again.kind === 'damaged' ? again.damage.why : 'it is gone, or has no mark');
  const lives = `processes ${processes.pids.slice(0, 10).join(', ')} of worker ${workerId} live on`;
  if (marked === undefined) return { kind: 'damaged', damage: { path, why: `${why}, and ${lives}` } };
  host.tellDamage({ path, why: `${why}, and ${lives}: they are followed without it` });
  const claim = { by: 'shim', ...leader, bootId: host.bootId } as const;
  host.keep(marked, claim);
  const state = await host.look({ ...marked.worker, ...host.live.get(workerId)?.worker }, snapshot);
  return { kind: 'ours', scanned: { marked: { ...marked, factory }, state } };
}

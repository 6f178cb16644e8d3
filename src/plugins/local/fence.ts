import type { Worker } from '../../worker/worker.ts';
import type { LocalHost } from './host.ts';
import { isAlive, takeSnapshot } from './processes.ts';
import type { ShimClaim } from './worker-files.ts';

/** A worker of which no attempt starts any more, with the process of the one that did; or why that cannot be said. */
export type Fenced =
  | { readonly kind: 'fenced'; readonly claim: ShimClaim | undefined }
  | { readonly kind: 'failed'; readonly error: unknown };

/** How long a shim that finds its claim taken may need to end, ms. */
const loserWait = 2000;
const loserPoll = 50;

/** Makes sure that no attempt up to each worker's `attempt` starts any more. */
export async function fence(
  host: LocalHost,
  workers: readonly Worker[],
): Promise<ReadonlyMap<number, Fenced>> {
  const fenced = new Map<number, Fenced>();
  // Their claims name no process: only their marks can tell whether one lives.
  const unnamed = new Map<number, ShimClaim | undefined>();
  for (const worker of workers) {
    const { workerId } = worker;
    try {
      const claim = await fenceOne(host, worker);
      if (claim === undefined || claim.pid === 0) unnamed.set(workerId, claim);
      else fenced.set(workerId, { kind: 'fenced', claim });
    } catch (error) {
      fenced.set(workerId, { kind: 'failed', error });
    }
  }
  // A shim that finds its claim taken ends at once, and one that hangs before its claim will. Another process that lives on is
  // a worker whose claim was removed.
  for (const end = host.clock.monotonic() + loserWait; ;) {
    // Taken after the fences, so that it shows whatever began before them.
    const snapshot = takeSnapshot();
    const over = host.clock.monotonic() >= end;
    for (const [workerId, claim] of unnamed) {
      const survivor = await host.survivor(workerId, undefined, snapshot);
      const loses =
        claim === undefined && survivor !== undefined && (await losesClaim(host, workerId, survivor));
      if (claim === undefined && survivor !== undefined && !loses && !over) continue;
      fenced.set(workerId, { kind: 'fenced', claim: loses ? undefined : (survivor ?? claim) });
      unnamed.delete(workerId);
    }
    if (unnamed.size === 0) return fenced;
    await host.clock.sleep(loserPoll);
  }
}

/**
 * The claim of the attempt that began; undefined where none did, and none will. The fence needs a directory: one that is
 * not there would be made by a submission that wakes late.
 */
async function fenceOne(host: LocalHost, worker: Worker): Promise<ShimClaim | undefined> {
  const { workerId, attempt } = worker;
  const { directory, factoryId } = host;
  const known = host.knownProcess(worker);
  if (known !== undefined && (await isAlive(known, host.bootId))) return known;
  await host.root.require();
  const marked = await directory.marked(workerId);
  if (marked === undefined) {
    await host.prepared();
    await directory.prepare({ factory: factoryId, worker, cpu: 0, memory: 0 });
  } else if (marked.ok && marked.value.factory !== factoryId) {
    throw new Error(`${directory.path(workerId)} is of the factory ${marked.value.factory}`);
  }
  for (let n = 1; n <= attempt; n++) {
    const claim = await directory.fence(workerId, n);
    if (claim.by === 'shim') return claim;
  }
  return undefined;
}

/** Whether a process is a shim that will find its claim taken. A directory that cannot be read says nothing of it. */
async function losesClaim(host: LocalHost, workerId: number, shim: ShimClaim): Promise<boolean> {
  try {
    return await host.directory.isBeforeClaim(workerId, shim);
  } catch {
    return false;
  }
}

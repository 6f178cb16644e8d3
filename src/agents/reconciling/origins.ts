import type { AgentStore } from '../agent-store.ts';
import { isCounted } from '../../worker/counted.ts';
import type { MarkedWorker } from '../../worker/marked.ts';
import type { OriginKey } from '../../worker/news.ts';

/**
 * Workers without a row whose origin has another worker already: a lost database let the source ask again before this place
 * was listed. An origin has one row, so these cannot be adopted. @returns the other worker, by the id of the one without a row
 */
export async function takenOrigins(
  origins: AgentStore['origins'],
  strangers: readonly MarkedWorker[],
): Promise<ReadonlyMap<number, number>> {
  const taken = new Map<number, number>();
  const byKind = Map.groupBy(
    strangers.filter((worker) => !isCounted(worker)),
    ({ origin }) => origin.kind,
  );
  for (const [kind, workers] of byKind) {
    const known = await origins.known(
      kind,
      workers.map(({ origin }) => origin),
    );
    const owners = new Map(known.map(({ origin, worker }) => [nameOf(origin), worker.workerId]));
    for (const { workerId, origin } of workers) {
      const owner = owners.get(nameOf(origin)) ?? workerId;
      if (owner !== workerId) taken.set(workerId, owner);
    }
  }
  return taken;
}

export function whyTaken(owner: number | undefined): string {
  return `its origin has another worker${owner === undefined ? '' : `, ${owner}`}`;
}

function nameOf({ uid, index }: OriginKey): string {
  return `${index} ${uid}`;
}

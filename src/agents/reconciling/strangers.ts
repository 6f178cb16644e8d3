import type { AgentStore } from '../agent-store.ts';
import type { Found } from '../../plugins/contracts/index.ts';
import { holdsOwn } from '../../util/own-secrets.ts';
import { isCounted } from '../../worker/counted.ts';
import { workerName } from '../../worker/identity.ts';
import type { MarkedWorker } from '../../worker/marked.ts';
import type { OriginKey } from '../../worker/news.ts';

/** An object whose mark names a worker. */
export type Marked = Found & { readonly identity: MarkedWorker };

export function isMarked(found: Found): found is Marked {
  return found.identity !== undefined;
}

/**
 * Whether a secret of ours stands in what a row is made of, in a mark or in what the backend calls the object: the row would show it. Servers
 * may send back how they were asked, in whatever they say. What the configuration says itself is no sign of that, whatever word of it a
 * variable has as its password: a configured queue, the name that this factory gives the worker, and the connection.
 */
export function hasLogin(
  { identity, handle }: Marked,
  { factoryId, connection, isConfigured }: Home,
): boolean {
  const { workerId, name, queue, origin, requirements, groupId = '' } = identity;
  const ours = new Set<unknown>([workerName(factoryId, workerId), ...(isConfigured ? [queue] : [])]);
  const called = Object.values(handle).filter((value) => !connection.includes(String(value)));
  const said = [name, queue, origin.uid, groupId, ...called].filter((value) => !ours.has(value));
  return holdsOwn(JSON.stringify([origin.kind, requirements, said]));
}

/** Where objects are found, and whether the queue of one is configured. */
interface Home {
  readonly factoryId: string;
  readonly connection: string;
  readonly isConfigured: boolean;
}

/** Why an object gets no row, and whether it may be the worker all the same: then nobody but a person removes it. */
export interface Outdone {
  readonly why: string;
  readonly doubtful: boolean;
}

/**
 * Of objects that could be adopted, those that are not, by their places: an id has one row, and so has an origin. Objects are copied
 * with their marks, and edited: first comes what is most like a worker of this factory, whatever it says of others.
 *
 * That an origin has another worker already has a second cause: a lost database let the source ask again before this place was listed.
 */
export async function outdoneOf(
  origins: AgentStore['origins'],
  factoryId: string,
  strangers: readonly Marked[],
): Promise<ReadonlyMap<string, Outdone>> {
  const owners = await ownersOf(
    origins,
    strangers.map(({ identity }) => identity),
  );
  const places = new Map<number, string>();
  const outdone = new Map<string, Outdone>();
  for (const { place, identity } of inOrder(factoryId, strangers)) {
    const { workerId } = identity;
    const origin = isCounted(identity) ? undefined : nameOf(identity.origin.kind, identity.origin);
    const owner = (origin === undefined ? undefined : owners.get(origin)) ?? workerId;
    const first = places.get(workerId);
    if (owner !== workerId) outdone.set(place, { why: whyTaken(owner), doubtful: false });
    else if (first !== undefined) outdone.set(place, { why: whySame(first), doubtful: true });
    else {
      places.set(workerId, place);
      if (origin !== undefined) owners.set(origin, workerId);
    }
  }
  return outdone;
}

/**
 * Of several objects with the mark of one worker that has a row, those that are not the one of the row, by their places.
 * Nothing is said where the row does not tell which one it is.
 */
export async function copiesOf(
  workers: AgentStore['workers'],
  known: readonly Marked[],
): Promise<ReadonlyMap<string, Outdone>> {
  const several = [...Map.groupBy(known, ({ identity }) => identity.workerId)].filter(
    ([, all]) => all.length > 1,
  );
  if (several.length === 0) return new Map();
  const records = await workers.byIds(several.map(([workerId]) => workerId));
  const rows = new Map(records.map((row) => [row.workerId, row]));
  return new Map(
    several.flatMap(([workerId, all]) => {
      const row = rows.get(workerId);
      const [own, ...more] = all.filter(({ handle }) =>
        Object.entries(handle).every(([key, value]) => row?.handle?.[key] === value),
      );
      if (own === undefined || more.length > 0) return [];
      // What another attempt left may stand beside it.
      const others = all.filter((one) => one !== own && one.identity.attempt === row?.attempt);
      return others.map(({ place }) => [place, { why: whySame(own.place), doubtful: true }] as const);
    }),
  );
}

export function whyTaken(owner: number | undefined): string {
  return `its origin has another worker${owner === undefined ? '' : `, ${owner}`}`;
}

function whySame(place: string): string {
  return `its mark is that of ${place}; thresher removes neither of the two as an orphan`;
}

/**
 * First what most speaks for as the worker that its mark names. One that is against two others, by its id and by its origin, is not before
 * these: they would both be lost by it.
 */
function inOrder(factoryId: string, strangers: readonly Marked[]): readonly Marked[] {
  const counts = new Map<number | string, number>();
  const count = (key: number | string) => counts.set(key, (counts.get(key) ?? 0) + 1);
  const keysOf = ({ workerId, origin }: MarkedWorker) => {
    const name = nameOf(origin.kind, origin);
    return { name, both: `\n${workerId} ${name}` };
  };
  for (const { identity } of strangers) {
    const { name, both } = keysOf(identity);
    for (const key of [identity.workerId, name, both]) count(key);
  }
  const order = strangers.map((one) => {
    const { workerId, name, attempt } = one.identity;
    const likeness = [
      name === workerName(factoryId, workerId),
      one.place.endsWith(name),
      one.observation !== undefined,
    ];
    const keys = keysOf(one.identity);
    const [ofId = 0, ofOrigin = 0, ofBoth = 0] = [workerId, keys.name, keys.both].map((key) =>
      counts.get(key),
    );
    const rivals = ofId + ofOrigin - ofBoth;
    return { one, rank: [likeness.filter(Boolean).length, -rivals, attempt] };
  });
  const compare = (a: readonly number[], b: readonly number[]) =>
    a.map((value, at) => (b[at] ?? 0) - value).find((difference) => difference !== 0) ?? 0;
  return order.toSorted((a, b) => compare(a.rank, b.rank)).map(({ one }) => one);
}

/** By origin, the worker that has it. */
async function ownersOf(
  origins: AgentStore['origins'],
  workers: readonly MarkedWorker[],
): Promise<Map<string, number>> {
  const byKind = Map.groupBy(
    workers.filter((worker) => !isCounted(worker)),
    ({ origin }) => origin.kind,
  );
  const owners = new Map<string, number>();
  for (const [kind, some] of byKind) {
    const known = await origins.known(
      kind,
      some.map(({ origin }) => origin),
    );
    // An origin that was withdrawn before it had a worker has none.
    for (const { origin, worker } of known)
      if (worker.workerId !== null) owners.set(nameOf(kind, origin), worker.workerId);
  }
  return owners;
}

function nameOf(kind: string, { uid, index }: OriginKey): string {
  return `${kind} ${index} ${uid}`;
}

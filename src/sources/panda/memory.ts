import type { Static } from 'typebox';
import type { SourceMemory } from '../../plugins/contracts/index.ts';
import { check } from '../../util/schema.ts';
import Type from '../../util/type.ts';
import type { StatisticsCall, StatisticsReport } from './orders.ts';

/** Workers of one type that an order wants, named by a `uid` and consecutive indexes. */
const Run = Type.Object({
  type: Type.String(),
  uid: Type.String(),
  from: Type.Integer({ minimum: 0 }),
  count: Type.Integer({ minimum: 1 }),
});
export type Run = Static<typeof Run>;

/** An order of the server as it is carried out. */
const KeptOrder = Type.Object({
  /** Names this order. Requests that an earlier order left over keep the name of that one. */
  uid: Type.String(),
  /** The server's number of the command; absent in files of before. Later commands have higher numbers. */
  commandId: Type.Optional(Type.Integer()),
  /** ms UTC by the server's clock. */
  createdAt: Type.Number(),
  /** ms UTC by our clock. */
  takenAt: Type.Number(),
  /** The numbers that the server said, by resource type. */
  said: Type.Record(Type.String(), Type.Number()),
  /** The rest of it without the workers that the server had not heard of. */
  wanted: Type.Record(Type.String(), Type.Number()),
  /** The workers of `wanted` by their names. */
  runs: Type.Array(Run),
});
export type KeptOrder = Static<typeof KeptOrder>;

const Kept = Type.Object({
  /** Commands that the server gave and that are not carried out yet: it gives each only once. */
  commands: Type.Array(
    Type.Object({
      command_id: Type.Integer(),
      command: Type.String(),
      params: Type.Optional(Type.Unknown()),
      creation_date: Type.Optional(Type.Unknown()),
      wrong: Type.Optional(Type.String()),
      /** When it came, ms UTC; absent in files of before. */
      taken: Type.Optional(Type.Number()),
      /** How often it failed. */
      tries: Type.Optional(Type.Integer()),
    }),
  ),
  /** The last commands that were carried out, by their keys: an answer may come twice. */
  done: Type.Optional(Type.Array(Type.String())),
  /** Those among them that end workers. */
  kills: Type.Optional(Type.Array(Type.String())),
  /** By site: the one that counts. */
  orders: Type.Record(Type.String(), KeptOrder),
  /** By site. */
  reports: Type.Record(
    Type.String(),
    Type.Array(Type.Object({ countedAt: Type.Number(), upTo: Type.Integer(), storedBy: Type.Number() })),
  ),
  /** By site: calls with statistics that the server may carry out still. Absent in files of before. */
  calls: Type.Optional(
    Type.Record(
      Type.String(),
      Type.Array(
        Type.Object({
          /** As in a report. */
          countedAt: Type.Number(),
          upTo: Type.Integer(),
          /** When the server has surely ended it, ms UTC by our clock. */
          until: Type.Number(),
        }),
      ),
    ),
  ),
  /** The server's resource types, for a start without the server. */
  types: Type.Array(
    Type.Object({
      resource_name: Type.String(),
      mincore: Type.Union([Type.Number(), Type.Null()]),
      maxcore: Type.Union([Type.Number(), Type.Null()]),
      minrampercore: Type.Union([Type.Number(), Type.Null()]),
      maxrampercore: Type.Union([Type.Number(), Type.Null()]),
    }),
  ),
});
export type Kept = Static<typeof Kept>;

const nothing: Kept = { commands: [], orders: {}, reports: {}, types: [] };

/** Under this name the link keeps what it knows. */
const name = 'link.json';

/**
 * The link's memory of what the server said and heard, in one text that is replaced as a whole. It must survive a crash: a command is
 * given once, and an order is reckoned against the reports before it.
 */
export class LinkMemory {
  readonly #at: SourceMemory;
  #kept = nothing;
  #writing: Promise<void> = Promise.resolve();
  #isStored = true;

  constructor(at: SourceMemory) {
    this.#at = at;
  }

  /** @returns why what was kept cannot be used, if so: the link begins anew then. @throws Error where the file cannot be read */
  async load(): Promise<string | undefined> {
    const text = await this.#at.read(name);
    return text === undefined ? undefined : this.take(text);
  }

  /** Takes up what was kept. @returns as `load` */
  take(text: string): string | undefined {
    const place = this.#at.placeOf(name);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return `${place} is no JSON`;
    }
    const checked = check(Kept, value);
    if (!checked.ok) {
      const [first] = checked.problems;
      return `${place} has another form than expected: ${first?.pointer ?? ''} ${first?.message ?? ''}`;
    }
    this.#kept = checked.value;
    return undefined;
  }

  get commands(): Kept['commands'] {
    return this.#kept.commands;
  }

  get done(): readonly string[] {
    return this.#kept.done ?? [];
  }

  get kills(): readonly string[] {
    return this.#kept.kills ?? [];
  }

  get types(): Kept['types'] {
    return this.#kept.types;
  }

  get orders(): ReadonlyMap<string, KeptOrder> {
    return new Map(Object.entries(this.#kept.orders));
  }

  /** The order that counts; a newer one takes its place. */
  orderOf(site: string): KeptOrder | undefined {
    return Object.hasOwn(this.#kept.orders, site) ? this.#kept.orders[site] : undefined;
  }

  reportsOf(site: string): readonly StatisticsReport[] {
    return Object.hasOwn(this.#kept.reports, site) ? (this.#kept.reports[site] ?? []) : [];
  }

  /** Calls with statistics of a site of which no answer came, the oldest first. */
  callsOf(site: string): readonly StatisticsCall[] {
    const { calls = {} } = this.#kept;
    return Object.hasOwn(calls, site) ? (calls[site] ?? []) : [];
  }

  /** When this returns it survives a crash. */
  change(changed: (kept: Kept) => Kept): Promise<void> {
    this.#kept = changed(this.#kept);
    return this.#store();
  }

  /** Writes again what could not be written the last time. @returns whether all that is kept survives a crash */
  async isStored(): Promise<boolean> {
    if (!this.#isStored) await this.#store().catch(() => undefined);
    return this.#isStored;
  }

  #store(): Promise<void> {
    const text = JSON.stringify(this.#kept);
    const written = this.#writing.then(async () => {
      this.#isStored = false;
      await this.#at.write(name, text);
      this.#isStored = true;
    });
    this.#writing = written.catch(() => undefined);
    return written;
  }
}

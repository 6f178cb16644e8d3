import { join } from 'node:path';
import { readFile } from 'node:fs/promises';
import Type, { type Static } from 'typebox';
import { check } from '../../util/schema.ts';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../util/files.ts';
import type { StatisticsReport } from './orders.ts';

/** An order of the server as it is carried out: its workers are named by its id and counted from 0 within it. */
const KeptOrder = Type.Object({
  /** `uid` of the origins of its workers. */
  uid: Type.String(),
  /** ms UTC by the server's clock. */
  createdAt: Type.Number(),
  /** ms UTC by our clock. */
  takenAt: Type.Number(),
  /** The resource type of each of its workers, by their indexes. */
  types: Type.Array(Type.String()),
});
export type KeptOrder = Static<typeof KeptOrder>;

const Kept = Type.Object({
  /** Commands that the server gave and that are not carried out yet: it gives each only once. */
  commands: Type.Array(
    Type.Object({
      command_id: Type.Integer(),
      command: Type.String(),
      params: Type.Unknown(),
      creation_date: Type.Optional(Type.Unknown()),
    }),
  ),
  /** By site, the newest last: later ones may have been counted without the workers of earlier ones. */
  orders: Type.Record(Type.String(), Type.Array(KeptOrder)),
  /** By site. */
  reports: Type.Record(
    Type.String(),
    Type.Array(Type.Object({ countedAt: Type.Number(), storedBy: Type.Number() })),
  ),
});
type Kept = Static<typeof Kept>;

/**
 * The link's memory of what the server said and heard, in one file that is replaced as a whole. It must survive a crash: a command is
 * given once, and an order is reckoned against the reports before it.
 */
export class LinkMemory {
  readonly #file: string;
  #kept: Kept = { commands: [], orders: {}, reports: {} };
  #writing: Promise<void> = Promise.resolve();

  constructor(directory: string) {
    this.#file = join(directory, 'link.json');
  }

  /** @returns why what was kept cannot be used, if so: the link begins anew then */
  async load(directory: string): Promise<string | undefined> {
    await ensureDirectory(directory);
    let text: string;
    try {
      text = await readFile(this.#file, 'utf8');
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
    try {
      const checked = check(Kept, JSON.parse(text));
      if (!checked.ok) return `${this.#file} has another form than expected`;
      this.#kept = checked.value;
      return undefined;
    } catch {
      return `${this.#file} is no JSON`;
    }
  }

  get commands(): Kept['commands'] {
    return this.#kept.commands;
  }

  ordersOf(site: string): readonly KeptOrder[] {
    return this.#kept.orders[site] ?? [];
  }

  /** The order that counts; a newer one takes its place. */
  orderOf(site: string): KeptOrder | undefined {
    return this.ordersOf(site).at(-1);
  }

  reportsOf(site: string): readonly StatisticsReport[] {
    return this.#kept.reports[site] ?? [];
  }

  /** When this returns it survives a crash. */
  change(changed: (kept: Kept) => Kept): Promise<void> {
    this.#kept = changed(this.#kept);
    const text = JSON.stringify(this.#kept);
    const written = this.#writing.then(() => writeFileAtomically(this.#file, text, 0o600));
    this.#writing = written.catch(() => undefined);
    return written;
  }
}

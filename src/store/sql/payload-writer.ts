import { type Kysely, sql } from 'kysely';
import { nextTurn } from '../../util/clock.ts';
import type { Payload } from '../../worker/payload.ts';
import type { WorkerToStart } from '../../worker/worker.ts';
import type { Tables } from '../tables.ts';
import { insertion } from './insert-rows.ts';
import type { FactoryRows } from './open-database.ts';
import { type Shares, sharesOf, type StoredFile, withoutShared } from './shared-contents.ts';

/** Characters of payloads that one statement takes: one text of all payloads of a pass may be gigabytes. */
const atOnce = 1_000_000;

/** A payload that no pending worker has. */
export const unneeded = sql.raw(`NOT EXISTS (SELECT 1 FROM workers WHERE workers.instance = payloads.instance
      AND workers.payload_id = payloads.payload_id AND workers.status = 'pending')`);

/** A row of shared contents that no payload has. */
export const unshared =
  sql.raw(`NOT EXISTS (SELECT 1 FROM payloads WHERE payloads.instance = payload_shares.instance
      AND payloads.share_id = payload_shares.share_id)`);

interface Row {
  readonly instance: string;
  readonly payload_id: string;
  readonly share_id: string | null;
  readonly content: string;
  readonly secret: string | null;
}

interface ShareRow {
  readonly instance: string;
  readonly share_id: string;
  readonly content: string;
  readonly secret: string | null;
}

/** Writes and wipes payloads inside the transactions that write workers. One per store. */
export class PayloadWriter {
  readonly #rows: FactoryRows;

  constructor(rows: FactoryRows) {
    this.#rows = rows;
  }

  /** Writes the payloads of these workers: one row for each id. */
  async write(tx: Kysely<Tables>, workers: readonly WorkerToStart[]): Promise<void> {
    const { dialect, instance } = this.#rows;
    const byId = payloadsOf(workers);
    if (byId.size === 0) return;
    const shares = sharesOf(byId);
    // Secrets that move to another page must not stay behind in the former one.
    await dialect.erasing(tx, async () => {
      await this.#writeShares(tx, shares);
      let rows: Row[] = [];
      let characters = 0;
      for (const [payload_id, payload] of byId) {
        const share_id = shares.get(payload_id)?.shareId ?? null;
        const row: Row = { instance, payload_id, share_id, ...split(payload, share_id !== null) };
        rows.push(row);
        characters += row.content.length + (row.secret?.length ?? 0);
        if (characters < atOnce) continue;
        await this.#insert(tx, rows);
        // SQLite answers in the same turn, and one pass may write a hundred megabytes.
        await nextTurn();
        rows = [];
        characters = 0;
      }
      await this.#insert(tx, rows);
    });
  }

  /** Wipes those among these payloads that no pending worker needs any more. */
  async wipe(tx: Kysely<Tables>, payloadIds: ReadonlySet<string>): Promise<void> {
    if (payloadIds.size === 0) return;
    const { dialect, instance } = this.#rows;
    await dialect.erasing(tx, async () => {
      await sql`DELETE FROM payloads WHERE instance = ${instance}
        AND payload_id IN (${dialect.values([...payloadIds], 'text')}) AND ${unneeded}`.execute(tx);
      // Few, and none where the work of workers differs.
      await sql`DELETE FROM payload_shares WHERE instance = ${instance} AND ${unshared}`.execute(tx);
    });
  }

  async #writeShares(tx: Kysely<Tables>, shares: Shares): Promise<void> {
    const { dialect, instance } = this.#rows;
    for (const { shareId: share_id, contents, secrets } of new Set(shares.values())) {
      const secret = secrets.length === 0 ? null : JSON.stringify(secrets);
      const row: ShareRow = { instance, share_id, content: JSON.stringify(contents), secret };
      await insertion(dialect, 'payload_shares', [row]).execute(tx);
    }
  }

  async #insert(tx: Kysely<Tables>, rows: readonly Row[]): Promise<void> {
    if (rows.length > 0) await insertion(this.#rows.dialect, 'payloads', rows).execute(tx);
  }
}

function payloadsOf(workers: readonly WorkerToStart[]): ReadonlyMap<string, Payload> {
  const byId = new Map<string, Payload>();
  for (const { workerId, payload, payloadId } of workers) {
    if (payload === undefined) continue;
    if (payloadId === undefined) throw new Error(`the payload of worker ${workerId} has no id`);
    byId.set(payloadId, payload);
  }
  return byId;
}

/** A payload as its row has it: the contents of secret files apart from the rest, and shared ones in another row. */
function split(payload: Payload, shares: boolean): Pick<Row, 'content' | 'secret'> {
  const all: readonly StoredFile[] = shares ? withoutShared(payload.files ?? []) : (payload.files ?? []);
  const secrets = all.filter(({ secret, shared }) => secret === true && shared === undefined);
  if (secrets.length === 0)
    return { content: JSON.stringify(shares ? { ...payload, files: all } : payload), secret: null };
  const files = all.map((file) => (file.secret === true ? { ...file, content: '' } : file));
  return {
    content: JSON.stringify({ ...payload, files }),
    secret: JSON.stringify(secrets.map(({ content }) => content)),
  };
}

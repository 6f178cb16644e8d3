import { type Kysely, sql } from 'kysely';
import type { Payload, PayloadFile } from '../../worker/payload.ts';
import type { WorkerToStart } from '../../worker/worker.ts';
import type { Dialect } from '../dialect.ts';
import type { PayloadStore } from '../payloads.ts';
import type { Tables } from '../tables.ts';
import { insertion } from './insert-rows.ts';
import type { FactoryRows } from './open-database.ts';
import { inTransaction } from './transaction.ts';

/** Characters of payloads that one statement takes: one text of all payloads of a pass may be gigabytes. */
const atOnce = 4_000_000;

/** A payload of which no pending worker is left. */
const unneeded = sql.raw(`NOT EXISTS (SELECT 1 FROM workers WHERE workers.instance = payloads.instance
      AND workers.payload_id = payloads.payload_id AND workers.status = 'pending')`);

export class SqlPayloadStore implements PayloadStore {
  readonly #rows: FactoryRows;

  constructor(rows: FactoryRows) {
    this.#rows = rows;
  }

  async byIds(payloadIds: readonly string[]): Promise<ReadonlyMap<string, Payload>> {
    const { db, dialect, instance } = this.#rows;
    const rows = await sql<{ payload_id: string; content: string; secret: string | null }>`
      SELECT payload_id, content, secret FROM payloads
      WHERE instance = ${instance} AND payload_id IN (${dialect.values(payloadIds, 'text')})`.execute(db);
    const payloads = new Map<string, Payload>();
    for (const { payload_id, content, secret } of rows.rows) {
      const payload = joined(content, secret);
      if (payload !== undefined) payloads.set(payload_id, payload);
    }
    return payloads;
  }

  async wipeUnneeded(): Promise<number> {
    const { db, dialect, instance } = this.#rows;
    return inTransaction(db, (tx) =>
      dialect.erasing(tx, async () => {
        const wiped = await sql`DELETE FROM payloads WHERE instance = ${instance} AND ${unneeded}`.execute(
          tx,
        );
        return Number(wiped.numAffectedRows ?? 0n);
      }),
    );
  }
}

/** Wipes those among these payloads that no pending worker needs any more. */
export async function wipe(
  tx: Kysely<Tables>,
  { dialect, instance }: FactoryRows,
  payloadIds: ReadonlySet<string>,
): Promise<void> {
  if (payloadIds.size === 0) return;
  await dialect.erasing(tx, () =>
    sql`DELETE FROM payloads WHERE instance = ${instance}
      AND payload_id IN (${dialect.values([...payloadIds], 'text')}) AND ${unneeded}`.execute(tx),
  );
}

/** Writes the payloads of these workers: one row for each id. */
export async function writePayloads(
  tx: Kysely<Tables>,
  { dialect, instance }: FactoryRows,
  workers: readonly WorkerToStart[],
): Promise<void> {
  const byId = new Map<string, Payload>();
  for (const { workerId, payload, payloadId } of workers) {
    if (payload === undefined) continue;
    if (payloadId === undefined) throw new Error(`the payload of worker ${workerId} has no id`);
    byId.set(payloadId, payload);
  }
  if (byId.size === 0) return;
  // Secrets that move to another page must not stay behind in the former one.
  await dialect.erasing(tx, async () => {
    let rows: Row[] = [];
    let characters = 0;
    for (const [payload_id, payload] of byId) {
      const row: Row = { instance, payload_id, ...split(payload) };
      rows.push(row);
      characters += row.content.length + (row.secret?.length ?? 0);
      if (characters < atOnce) continue;
      await insertPayloads(tx, dialect, rows);
      rows = [];
      characters = 0;
    }
    if (rows.length > 0) await insertPayloads(tx, dialect, rows);
  });
}

interface Row {
  readonly instance: string;
  readonly payload_id: string;
  readonly content: string;
  readonly secret: string | null;
}

/** Workers of one payload may come in several calls, as after an adoption. */
async function insertPayloads(tx: Kysely<Tables>, dialect: Dialect, rows: readonly Row[]): Promise<void> {
  await insertion(
    dialect,
    'payloads',
    rows,
    () => sql`WHERE true ON CONFLICT (instance, payload_id) DO NOTHING`,
  ).execute(tx);
}

/** A payload as its row has it: the contents of secret files apart from the rest. */
function split(payload: Payload): Pick<Row, 'content' | 'secret'> {
  const secrets = (payload.files ?? []).filter(({ secret }) => secret === true);
  if (secrets.length === 0) return { content: JSON.stringify(payload), secret: null };
  const files = payload.files?.map((file) => (file.secret === true ? { ...file, content: '' } : file));
  return {
    content: JSON.stringify({ ...payload, files }),
    secret: JSON.stringify(secrets.map(({ content }) => content)),
  };
}

/** Undefined where the secret files are not there any more: a payload without them is not the one that was asked for. */
function joined(content: string, secret: string | null): Payload | undefined {
  const payload = JSON.parse(content) as Payload;
  const contents = secret === null ? [] : (JSON.parse(secret) as readonly string[]);
  const left = contents.values();
  const files: PayloadFile[] = [];
  for (const file of payload.files ?? []) {
    if (file.secret !== true) {
      files.push(file);
      continue;
    }
    const next = left.next();
    if (next.done === true) return undefined;
    files.push({ ...file, content: next.value });
  }
  return payload.files === undefined ? payload : { ...payload, files };
}

import { sql } from 'kysely';
import type { Payload, PayloadFile } from '../../worker/payload.ts';
import type { PayloadStore } from '../payloads.ts';
import type { FactoryRows, OpenDatabase } from './open-database.ts';
import { unneeded } from './payload-writer.ts';
import { inTransaction } from './transaction.ts';

export class SqlPayloadStore implements PayloadStore {
  readonly #rows: FactoryRows;
  readonly #emptyLog: OpenDatabase['emptyLog'];

  constructor(rows: FactoryRows, emptyLog: OpenDatabase['emptyLog']) {
    this.#rows = rows;
    this.#emptyLog = emptyLog;
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
    const wiped = await inTransaction(db, (tx) =>
      dialect.erasing(tx, async () => {
        const deleted = await sql`DELETE FROM payloads WHERE instance = ${instance} AND ${unneeded}`.execute(
          tx,
        );
        return Number(deleted.numAffectedRows ?? 0n);
      }),
    );
    // Where a reader is in the way, the next call does it.
    await this.#emptyLog();
    return wiped;
  }
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

import { sql } from 'kysely';
import type { Payload, PayloadFile } from '../../worker/payload.ts';
import type { PayloadStore } from '../payloads.ts';
import type { FactoryRows, OpenDatabase } from './open-database.ts';
import { unneeded, unshared } from './payload-writer.ts';
import type { SharedContents, StoredFile } from './shared-contents.ts';
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
    const { rows } = await sql<PayloadRow>`
      SELECT payload_id, share_id, content, secret FROM payloads
      WHERE instance = ${instance} AND payload_id IN (${dialect.values(payloadIds, 'text')})`.execute(db);
    const shares = await this.#shares(new Set(rows.flatMap(({ share_id }) => share_id ?? [])));
    const payloads = new Map<string, Payload>();
    for (const { payload_id, share_id, content, secret } of rows) {
      const payload = joined(content, secret, share_id === null ? none : shares.get(share_id));
      if (payload !== undefined) payloads.set(payload_id, payload);
    }
    return payloads;
  }

  async #shares(shareIds: ReadonlySet<string>): Promise<ReadonlyMap<string, SharedContents>> {
    if (shareIds.size === 0) return new Map();
    const { db, dialect, instance } = this.#rows;
    const { rows } = await sql<ShareRow>`
      SELECT share_id, content, secret FROM payload_shares
      WHERE instance = ${instance} AND share_id IN (${dialect.values([...shareIds], 'text')})`.execute(db);
    return new Map(
      rows.map(({ share_id, content, secret }) => {
        const contents = JSON.parse(content) as string[];
        const secrets = secret === null ? [] : (JSON.parse(secret) as string[]);
        return [share_id, { contents, secrets }];
      }),
    );
  }

  async wipeUnneeded(): Promise<number> {
    const { db, dialect, instance } = this.#rows;
    const wiped = await inTransaction(db, (tx) =>
      dialect.erasing(tx, async () => {
        const deleted = await sql`DELETE FROM payloads WHERE instance = ${instance} AND ${unneeded}`.execute(
          tx,
        );
        await sql`DELETE FROM payload_shares WHERE instance = ${instance} AND ${unshared}`.execute(tx);
        return Number(deleted.numAffectedRows ?? 0n);
      }),
    );
    // Where a reader is in the way, the next call does it.
    await this.#emptyLog();
    return wiped;
  }
}

interface PayloadRow {
  readonly payload_id: string;
  readonly share_id: string | null;
  readonly content: string;
  readonly secret: string | null;
}

type ShareRow = Omit<PayloadRow, 'payload_id'> & { readonly share_id: string };

const none: SharedContents = { contents: [], secrets: [] };

/** Undefined where the secret files are not there any more: a payload without them is not the one that was asked for. */
function joined(
  content: string,
  secret: string | null,
  shares: SharedContents | undefined,
): Payload | undefined {
  const payload = JSON.parse(content) as Payload & { readonly files?: readonly StoredFile[] };
  const left = (secret === null ? [] : (JSON.parse(secret) as readonly string[])).values();
  const files: PayloadFile[] = [];
  for (const { shared, ...file } of payload.files ?? []) {
    const found =
      shared !== undefined && shares !== none
        ? shares?.[file.secret === true ? 'secrets' : 'contents'][shared]
        : file.secret === true
          ? left.next().value
          : file.content;
    if (found === undefined) return undefined;
    files.push({ ...file, content: found });
  }
  return payload.files === undefined ? payload : { ...payload, files };
}

import { createHash, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { ThresherError } from '../../worker/errors.ts';
import { type OperatorRequest, operatorKind, type WithdrawnRequest } from '../../worker/operator-request.ts';
import { partsOf, type Payload, type PayloadPart } from '../../worker/payload.ts';
import { isFinal, type WorkerStatus, workerStatuses } from '../../worker/status.ts';
import type { Requirements } from '../../worker/worker.ts';
import type { NewRequest, OpenRequests, RequestFilter, RequestRecord, RequestStore } from '../requests.ts';
import { toRecord, type WorkerRecord } from '../rows.ts';
import type { RequestsTable, Tables } from '../tables.ts';
import type { FactoryRows } from './open-database.ts';
import { inTransaction } from './transaction.ts';

type ShownRow = Omit<RequestsTable, 'content' | 'digest' | 'instance' | 'key'>;

const shownColumns = [
  ...(['id', 'queue', 'count', 'requirements', 'parts', 'asked_by', 'creation_time'] as const),
  ...(['withdrawn_time', 'withdraw_reason', 'ended_time', 'served_time'] as const),
] as const;

/** Requests that may wait for workers at once, and what they ask for: each pass of their queue goes through all of these workers. */
const mostOpen = { requests: 10_000, workers: 100_000, bytes: 128 * 1024 * 1024 };

const livingStatuses = workerStatuses.filter((status) => !isFinal(status));

/** It lacks workers, or one of them lives. */
const isUnderWay = sql<boolean>`((served_time IS NULL AND count > (${workersOfRequest(sql`count(*)`)}))
  OR EXISTS (${workersOfRequest(sql`1`)} AND status IN (${sql.join(livingStatuses.map((status) => sql.lit(status)))})))`;

function workersOfRequest(what: RawBuilder<unknown>) {
  return sql`SELECT ${what} FROM workers WHERE workers.instance = requests.instance
    AND workers.origin_kind = ${sql.lit(operatorKind)} AND workers.origin_uid = requests.id`;
}

export class SqlRequestStore implements RequestStore {
  readonly #rows: FactoryRows;

  constructor(rows: FactoryRows) {
    this.#rows = rows;
  }

  async add(request: NewRequest, at: number): Promise<{ readonly id: string; readonly isNew: boolean }> {
    const { db, dialect, instance } = this.#rows;
    const { id, key, queue, count, requirements = {}, payload, by } = request;
    const salt = randomBytes(16).toString('base64url');
    const row = {
      id,
      instance,
      key: key ?? null,
      digest: key === undefined ? null : await digestOf(request, salt),
      queue,
      count,
      requirements: JSON.stringify(requirements),
      content: payload === undefined ? null : JSON.stringify(payload),
      parts: JSON.stringify(payload === undefined ? [] : partsOf(payload)),
      asked_by: by,
      creation_time: at,
    };
    // Secrets of other requests that move to another page must not stay behind in the former one.
    const added = await inTransaction(db, (tx) =>
      dialect.erasing(tx, async () => {
        const inserted = await tx
          .insertInto('requests')
          .values(row)
          .onConflict((conflict) => conflict.columns(['instance', 'key']).doNothing())
          .returning('id')
          .execute();
        if (inserted.length > 0) await this.#requireRoom(tx);
        return inserted;
      }),
    );
    if (added.length > 0 || key === undefined) return { id, isNew: true };
    const before = await db
      .selectFrom('requests')
      .select(['id', 'digest'])
      .where('instance', '=', instance)
      .where('key', '=', key)
      .executeTakeFirstOrThrow();
    const [itsSalt = ''] = before.digest?.split('$') ?? [];
    if (before.digest === (await digestOf(request, itsSalt))) return { id: before.id, isNew: false };
    const message = `the key ${JSON.stringify(key)} is that of request ${before.id}, which asks for something else: take another key`;
    throw new ThresherError('request-key-taken', message);
  }

  async byId(id: string): Promise<RequestRecord | undefined> {
    const { db, instance } = this.#rows;
    const rows = await db
      .selectFrom('requests')
      .select(shownColumns)
      .where('instance', '=', instance)
      .where('id', '=', id)
      .execute();
    return (await this.#shown(rows))[0];
  }

  async countOpen(): Promise<number> {
    const { db, instance } = this.#rows;
    const { open } = await db
      .selectFrom('requests')
      .select(({ fn }) => fn.countAll<number>().as('open'))
      .where('instance', '=', instance)
      .where('served_time', 'is', null)
      .where('withdrawn_time', 'is', null)
      .executeTakeFirstOrThrow();
    return open;
  }

  async list({ queue, open, limit }: RequestFilter): Promise<RequestRecord[]> {
    const { db, instance } = this.#rows;
    let query = db.selectFrom('requests').select(shownColumns).where('instance', '=', instance);
    if (queue !== undefined) query = query.where('queue', '=', queue);
    if (open === true) query = query.where('served_time', 'is', null).where('withdrawn_time', 'is', null);
    return this.#shown(await query.orderBy('creation_time', 'desc').orderBy('id').limit(limit).execute());
  }

  async workersOf(id: string, limit: number): Promise<WorkerRecord[]> {
    const { db, instance } = this.#rows;
    const rows = await db
      .selectFrom('workers')
      .selectAll()
      .where('instance', '=', instance)
      .where('origin_kind', '=', operatorKind)
      .where('origin_uid', '=', id)
      .orderBy('origin_index')
      .limit(limit)
      .execute();
    return rows.map(toRecord);
  }

  async open(known: ReadonlySet<string>): Promise<OpenRequests> {
    const { db, dialect, instance } = this.#rows;
    const rows = await db
      .selectFrom('requests')
      .select('id')
      .where('instance', '=', instance)
      .where('served_time', 'is', null)
      .where('withdrawn_time', 'is', null)
      .orderBy('creation_time')
      .orderBy('id')
      .execute();
    const ids = rows.map(({ id }) => id);
    const news = ids.filter((id) => !known.has(id));
    if (news.length === 0) return { ids, added: [] };
    const added = await db
      .selectFrom('requests')
      .select(['id', 'queue', 'count', 'requirements', 'content'])
      .where('instance', '=', instance)
      .where('id', 'in', sql<string>`(${dialect.values(news, 'text')})`)
      .execute();
    return { ids, added: added.map(toRequest) };
  }

  served(ids: readonly string[], at: number): Promise<void> {
    const { db, dialect, instance } = this.#rows;
    return inTransaction(db, (tx) =>
      dialect.erasing(tx, async () => {
        await tx
          .updateTable('requests')
          .set({ content: null, served_time: at })
          .where('instance', '=', instance)
          .where('id', 'in', sql<string>`(${dialect.values(ids, 'text')})`)
          .where('served_time', 'is', null)
          .execute();
      }),
    );
  }

  withdraw(id: string, reason: string, at: number): Promise<boolean> {
    const { db, dialect, instance } = this.#rows;
    return inTransaction(db, (tx) =>
      dialect.erasing(tx, async () => {
        const rows = await tx
          .updateTable('requests')
          .set({ content: null, withdrawn_time: at, withdraw_reason: reason })
          .where('instance', '=', instance)
          .where('id', '=', id)
          .where('withdrawn_time', 'is', null)
          .where(isUnderWay)
          .returning('id')
          .execute();
        return rows.length > 0;
      }),
    );
  }

  async toEnd(): Promise<WithdrawnRequest[]> {
    const { db, instance } = this.#rows;
    const rows = await db
      .selectFrom('requests')
      .select(['id', 'count', 'withdraw_reason'])
      .where('instance', '=', instance)
      .where('withdrawn_time', 'is not', null)
      .where('ended_time', 'is', null)
      .orderBy('withdrawn_time')
      .execute();
    return rows.map(({ id, count, withdraw_reason }) => ({ id, count, reason: withdraw_reason ?? '' }));
  }

  async ended(ids: readonly string[], at: number): Promise<void> {
    const { db, dialect, instance } = this.#rows;
    await db
      .updateTable('requests')
      .set({ ended_time: at })
      .where('instance', '=', instance)
      .where('id', 'in', sql<string>`(${dialect.values(ids, 'text')})`)
      .execute();
  }

  async prune(before: number, keysBefore: number): Promise<number> {
    const { db, instance } = this.#rows;
    const { numAffectedRows = 0n } = await sql`DELETE FROM requests WHERE instance = ${instance}
      AND (served_time < ${before} OR ended_time < ${before}) AND (key IS NULL OR creation_time < ${keysBefore})
      AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.instance = requests.instance
        AND workers.origin_kind = ${operatorKind} AND workers.origin_uid = requests.id)`.execute(db);
    return Number(numAffectedRows);
  }

  /** The daemon keeps open requests in memory, with their content. @throws ThresherError `requests-full` */
  async #requireRoom(tx: Kysely<Tables>): Promise<void> {
    const { rows } = await sql<{ requests: number; workers: number; bytes: number }>`
      SELECT count(*) AS requests, coalesce(sum(count), 0) AS workers, coalesce(sum(octet_length(content)), 0) AS bytes FROM requests
      WHERE instance = ${this.#rows.instance} AND served_time IS NULL AND withdrawn_time IS NULL`.execute(tx);
    const [{ requests, workers, bytes } = { requests: 0, workers: 0, bytes: 0 }] = rows;
    if (requests <= mostOpen.requests && workers <= mostOpen.workers && bytes <= mostOpen.bytes) return;
    const message = `with this request ${requests} requests for ${workers} workers, with ${bytes} bytes of payloads, would wait; at most ${mostOpen.requests} for ${mostOpen.workers} workers, with ${mostOpen.bytes} bytes, may wait`;
    throw new ThresherError('requests-full', message);
  }

  async #shown(rows: readonly ShownRow[]): Promise<RequestRecord[]> {
    if (rows.length === 0) return [];
    const { db, dialect, instance } = this.#rows;
    const ids = rows.map(({ id }) => id);
    const counts = await sql<{ id: string; status: WorkerStatus; workers: number }>`
      SELECT origin_uid AS id, status, count(*) AS workers FROM workers
      WHERE instance = ${instance} AND origin_kind = ${operatorKind}
        AND origin_uid IN (${dialect.values(ids, 'text')}) GROUP BY origin_uid, status`.execute(db);
    const byId = Map.groupBy(counts.rows, ({ id }) => id);
    return rows.map((row) => ({
      id: row.id,
      queue: row.queue,
      count: row.count,
      requirements: JSON.parse(row.requirements) as Partial<Requirements>,
      parts: JSON.parse(row.parts) as PayloadPart[],
      by: row.asked_by,
      creationTime: row.creation_time,
      withdrawnTime: row.withdrawn_time,
      withdrawReason: row.withdraw_reason,
      servedTime: row.served_time,
      workers: Object.fromEntries((byId.get(row.id) ?? []).map(({ status, workers }) => [status, workers])),
    }));
  }
}

function toRequest(
  row: Pick<RequestsTable, 'id' | 'queue' | 'count' | 'requirements' | 'content'>,
): OperatorRequest {
  const request = {
    id: row.id,
    queue: row.queue,
    count: row.count,
    requirements: JSON.parse(row.requirements) as Partial<Requirements>,
  };
  return row.content === null ? request : { ...request, payload: JSON.parse(row.content) as Payload };
}

const derive = promisify<string, string, number, Buffer>(scrypt);

/**
 * Tells whether two requests ask for the same, also after the content of the first was wiped. It is slow to compute and
 * salted: nothing of a secret file can be guessed from it.
 */
async function digestOf(
  { queue, count, requirements = {}, payload = {} }: NewRequest,
  salt: string,
): Promise<string> {
  const sorted = (value: object) =>
    Object.entries(value).sort(([one], [other]) => (one < other ? -1 : Number(one > other)));
  const { values = {}, env = {}, files = [], argv = [] } = payload;
  const whole = [queue, count, sorted(requirements), sorted(values), sorted(env), argv, files.map(sorted)];
  const text = createHash('sha256').update(JSON.stringify(whole)).digest('base64url');
  return `${salt}$${(await derive(text, salt, 32)).toString('base64url')}`;
}

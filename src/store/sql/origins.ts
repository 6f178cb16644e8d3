import { sql } from 'kysely';
import { nextTurn } from '../../util/clock.ts';
import type {
  Census,
  KnownWorker,
  OriginCount,
  OriginFilter,
  OriginKey,
  WorkerNews,
} from '../../worker/news.ts';
import type { RowSet } from '../dialect.ts';
import { highestOwnId } from '../../worker/identity.ts';
import { isFinal } from '../../worker/status.ts';
import type { OriginStore, Unswept } from '../origins.ts';
import type { NewsTable, SpentOriginsTable } from '../tables.ts';
import { alive } from './conditions.ts';
import { insertRows } from './insert-rows.ts';
import { newsOf } from './news.ts';
import { knownColumns, type NewsWriter } from './news-writer.ts';
import type { FactoryRows } from './open-database.ts';
import { inTransaction } from './transaction.ts';

/** Origins per question: other work comes in between. */
const atOnce = 2000;

/** An origin, and when its worker was recorded or the origin withdrawn, ms UTC. */
interface Found {
  readonly news: WorkerNews;
  readonly made: number;
}

export class SqlOriginStore implements OriginStore {
  readonly #rows: FactoryRows;
  readonly #news: NewsWriter;

  constructor(rows: FactoryRows, news: NewsWriter) {
    this.#rows = rows;
    this.#news = news;
  }

  async known(kind: string, origins: readonly OriginKey[]): Promise<WorkerNews[]> {
    const found = new Map<string, Found>();
    for (let start = 0; start < origins.length; start += atOnce) {
      const asked = origins.slice(start, start + atOnce);
      addTo(found, await workersOf(this.#rows, kind, asked));
      addTo(found, await spentOf(this.#rows, kind, asked));
      await nextTurn();
    }
    return [...found.values()].map(({ news }) => news);
  }

  async find(kind: string, filters: readonly OriginFilter[]): Promise<WorkerNews[]> {
    const found = new Map<string, Found>();
    const one = filters.filter((filter) => filter.index !== undefined);
    const whole = filters.filter((filter) => filter.index === undefined);
    for (const similar of [one, whole]) {
      for (let start = 0; start < similar.length; start += atOnce) {
        const asked = similar.slice(start, start + atOnce);
        addTo(found, await workersOf(this.#rows, kind, asked));
        addTo(found, (await spentOf(this.#rows, kind, asked)).filter(isWithdrawn));
        await nextTurn();
      }
    }
    return [...found.values()].sort((first, second) => first.made - second.made).map(({ news }) => news);
  }

  async unswept(kind: string, uid: string): Promise<readonly Unswept[]> {
    const found = await this.#rows.db
      .selectFrom('workers')
      .select(['worker_id', 'queue', 'status'])
      .where('instance', '=', this.#rows.instance)
      .where('origin_kind', '=', kind)
      .where('origin_uid', '=', uid)
      .where('swept_time', 'is', null)
      .execute();
    return found.map(({ worker_id, queue, status }) => ({
      workerId: worker_id,
      queue,
      hasEnded: isFinal(status),
    }));
  }

  async living(kind: string): Promise<WorkerNews[]> {
    const { db, instance } = this.#rows;
    const columns = ['origin_uid', 'origin_index', 'queue', ...Object.values(knownColumns)];
    const found: WorkerNews[] = [];
    let last = 0;
    for (;;) {
      const { rows } = await sql<Omit<NewsTable, 'what'>>`
        SELECT modification_time AS at, ${sql.join(columns.map((column) => sql.raw(column)))} FROM workers
        WHERE instance = ${instance} AND ${isOf(this.#rows, kind)} AND worker_id > ${last} AND ${alive}
        ORDER BY worker_id LIMIT ${atOnce}`.execute(db);
      for (const row of rows) found.push(newsOf({ ...row, what: 'known' }, 0));
      last = rows.at(-1)?.worker_id ?? last;
      if (rows.length < atOnce) return found;
      await nextTurn();
    }
  }

  async census(kind: string, at: number): Promise<Census> {
    const { db, instance } = this.#rows;
    // The highest id comes first: a worker recorded meanwhile counts as a later one, though it may be in the numbers, too.
    const last = await sql<{ id: number | null }>`
      SELECT max(worker_id) AS id FROM workers WHERE instance = ${instance} AND worker_id <= ${highestOwnId}`.execute(
      db,
    );
    const { rows } = await sql<OriginCount>`
      SELECT queue, computing_site AS "computingSite", resource_type AS "resourceType", job_type AS "jobType", status,
        count(*) AS workers
      FROM workers WHERE instance = ${instance} AND origin_kind = ${kind} AND ${alive}
      GROUP BY queue, computing_site, resource_type, job_type, status`.execute(db);
    return { at, upTo: last.rows[0]?.id ?? 0, living: rows };
  }

  async madeSince(
    kind: string,
    computingSite: string,
    { at, upTo }: Pick<Census, 'at' | 'upTo'>,
  ): Promise<ReadonlyMap<string, number>> {
    const { db, instance } = this.#rows;
    const own = sql`instance = ${instance} AND ${isOf(this.#rows, kind)} AND computing_site = ${computingSite}`;
    // An id above all of ours says nothing of when it came, and a count that an older release kept may end with one.
    const known = upTo <= highestOwnId ? upTo : 0;
    const later =
      known === upTo
        ? sql`(worker_id <= ${highestOwnId} OR creation_time > ${at})`
        : sql`creation_time > ${at}`;
    const made = new Map<string, number>();
    const add = (rows: readonly { type: string; workers: number }[]) => {
      for (const { type, workers } of rows) made.set(type, (made.get(type) ?? 0) + workers);
    };
    // A site of which no count is known has all of its workers to be counted.
    for (let last = known; ;) {
      const { rows: ends } = await sql<{ id: number | null }>`
        SELECT max(worker_id) AS id FROM
          (SELECT worker_id FROM workers WHERE worker_id > ${last} ORDER BY worker_id LIMIT ${atOnce}) AS next`.execute(
        db,
      );
      const end = ends[0]?.id ?? null;
      if (end === null) break;
      const { rows } = await sql<{ type: string; workers: number }>`
        SELECT resource_type AS type, count(*) AS workers FROM workers
        WHERE worker_id > ${last} AND worker_id <= ${end} AND ${later} AND ${own} GROUP BY resource_type`.execute(
        db,
      );
      add(rows);
      last = end;
      await nextTurn();
    }
    // An adopted worker is recorded late and has an old id. Only living ones are adopted.
    const { rows } = await sql<{ type: string; workers: number }>`
      SELECT resource_type AS type, count(*) AS workers FROM workers
      WHERE ${own} AND ${alive} AND worker_id <= ${known} AND creation_time > ${at} GROUP BY resource_type`.execute(
      db,
    );
    add(rows);
    return made;
  }

  async end(
    kind: string,
    origins: readonly OriginKey[],
    reason: string,
    at: number,
  ): Promise<readonly { readonly workerId: number; readonly queue: string }[]> {
    return this.#spend(kind, origins, 'withdrawn', at, (rows) => askForEnds(rows, kind, origins, reason, at));
  }

  async withdraw(kind: string, origins: readonly OriginKey[], at: number): Promise<void> {
    await this.#spend(kind, origins, 'dropped', at, async () => []);
  }

  /** Withdraws those without a worker, after what `first` does in the same transaction. @returns what that gave */
  async #spend<Row>(
    kind: string,
    origins: readonly OriginKey[],
    status: 'withdrawn' | 'dropped',
    at: number,
    first: (rows: FactoryRows) => Promise<readonly Row[]>,
  ): Promise<readonly Row[]> {
    if (origins.length === 0) return [];
    const { done, told } = await inTransaction(this.#rows.db, async (tx) => {
      const rows = { ...this.#rows, db: tx };
      const done = await first(rows);
      const withdrawn = await withdraw(rows, kind, origins, status, at);
      if (!this.#news.hears(kind)) return { done, told: false };
      const news = withdrawn.map((origin) => withdrawalOf(rows.instance, kind, origin, at));
      await insertRows(tx, rows.dialect, 'news', news);
      return { done, told: news.length > 0 };
    });
    if (told) this.#news.committed(new Set([kind]));
    return done;
  }
}

/** One of a kind: by that index most workers that there ever were would be read. */
function isOf({ dialect }: FactoryRows, kind: string) {
  return sql`${dialect.unindexed('origin_kind')} = ${kind}`;
}

function askedRows({ dialect }: FactoryRows, origins: readonly OriginFilter[]): RowSet<'uid' | 'index'> {
  return dialect.rows<OriginFilter, 'uid' | 'index'>(
    'asked',
    { uid: { type: 'text', of: ({ uid }) => uid }, index: { type: 'integer', of: ({ index }) => index } },
    origins,
  );
}

/**
 * The rows of a table that have the asked origins. All of these have an index, or none. The asked ones come first in a CROSS
 * JOIN: SQLite keeps that order, where it would otherwise read all asked ones again for each worker.
 */
function sameOrigin(
  { instance }: FactoryRows,
  table: 'workers' | 'spent_origins',
  kind: string,
  asked: RowSet<'uid' | 'index'>,
  byIndex: boolean,
) {
  const own = (column: string) => sql.raw(`${table}.${column}`);
  const whole = sql`${own('instance')} = ${instance} AND ${own('origin_kind')} = ${kind}
    AND ${own('origin_uid')} = ${asked.column('uid')}`;
  return byIndex ? sql`${whole} AND ${own('origin_index')} = ${asked.column('index')}` : whole;
}

const byIndex = (origins: readonly OriginFilter[]) => origins[0]?.index !== undefined;

async function workersOf(
  rows: FactoryRows,
  kind: string,
  origins: readonly OriginFilter[],
): Promise<Found[]> {
  const asked = askedRows(rows, origins);
  const columns = ['origin_uid', 'origin_index', 'queue', ...Object.values(knownColumns)];
  const result = await sql<Omit<NewsTable, 'what'> & { made: number }>`
    SELECT workers.modification_time AS at, workers.creation_time AS made,
      ${sql.join(columns.map((column) => sql.raw(`workers.${column}`)))}
    FROM ${asked.from} CROSS JOIN workers WHERE ${sameOrigin(rows, 'workers', kind, asked, byIndex(origins))}`.execute(
    rows.db,
  );
  return result.rows.map((row) => ({ news: newsOf({ ...row, what: 'known' }, 0), made: row.made }));
}

async function spentOf(rows: FactoryRows, kind: string, origins: readonly OriginFilter[]): Promise<Found[]> {
  const asked = askedRows(rows, origins);
  const result = await sql<SpentOriginsTable>`
    SELECT spent_origins.* FROM ${asked.from}
    CROSS JOIN spent_origins WHERE ${sameOrigin(rows, 'spent_origins', kind, asked, byIndex(origins))}`.execute(
    rows.db,
  );
  return result.rows.map((row) => ({
    news: {
      sequence: 0,
      at: row.time,
      what: 'known',
      origin: { uid: row.origin_uid, index: row.origin_index },
      queue: row.queue,
      worker: spentWorker(row),
    },
    made: row.time,
  }));
}

/** A deleted row leaves only its end. Sources know one word for what has no worker. */
function spentWorker({ worker_id, status, end_time }: SpentOriginsTable): KnownWorker {
  return {
    workerId: worker_id,
    status: status === 'dropped' ? 'withdrawn' : status,
    computingSite: null,
    resourceType: null,
    jobType: null,
    nCore: null,
    minRamCount: null,
    batchId: null,
    nativeStatus: null,
    exitCode: null,
    errorCode: null,
    diagMessage: null,
    node: null,
    computingElement: null,
    placement: null,
    creationTime: null,
    submitTime: null,
    startTime: null,
    endTime: end_time,
  };
}

function isWithdrawn({ news }: Found): boolean {
  return news.worker.status === 'withdrawn';
}

/** A worker's row counts before a spent origin: an adopted worker may have both. */
function addTo(found: Map<string, Found>, more: readonly Found[]): void {
  for (const one of more) {
    const { uid, index } = one.news.origin;
    const name = `${index} ${uid}`;
    if (!found.has(name)) found.set(name, one);
  }
}

/** Asks for the end of the living workers of these origins; @returns those without an earlier request. */
async function askForEnds(
  rows: FactoryRows,
  kind: string,
  origins: readonly OriginKey[],
  reason: string,
  at: number,
): Promise<readonly { readonly workerId: number; readonly queue: string }[]> {
  const asked = askedRows(rows, origins);
  const result = await sql<{ worker_id: number; queue: string }>`
    UPDATE workers SET kill_time = ${at}, kill_reason = ${reason} WHERE worker_id IN (
      SELECT workers.worker_id FROM ${asked.from} CROSS JOIN workers
      WHERE ${sameOrigin(rows, 'workers', kind, asked, true)} AND ${alive} AND workers.kill_time IS NULL)
    RETURNING worker_id, queue`.execute(rows.db);
  return result.rows.map(({ worker_id, queue }) => ({ workerId: worker_id, queue }));
}

/**
 * Marks the origins without a worker. `withdrawn` counts more than `dropped`, whichever came first. One that is given twice counts once:
 * PostgreSQL changes no row twice in one statement. @returns those that were not so before
 */
async function withdraw(
  rows: FactoryRows,
  kind: string,
  origins: readonly OriginKey[],
  status: 'withdrawn' | 'dropped',
  at: number,
): Promise<readonly OriginKey[]> {
  const each = new Map(origins.map((origin) => [`${origin.index} ${origin.uid}`, origin]));
  const asked = askedRows(rows, [...each.values()]);
  const spent =
    status === 'withdrawn'
      ? sql`UPDATE SET status = 'withdrawn' WHERE spent_origins.status = 'dropped'`
      : sql`NOTHING`;
  const result = await sql<OriginKey>`
    INSERT INTO spent_origins (instance, origin_kind, origin_uid, origin_index, queue, status, time)
    SELECT ${rows.instance}, ${kind}, ${asked.column('uid')}, ${asked.column('index')}, '', ${status}, ${at}
    FROM ${asked.from}
    WHERE NOT EXISTS (SELECT 1 FROM workers WHERE ${sameOrigin(rows, 'workers', kind, asked, true)})
    ON CONFLICT (instance, origin_kind, origin_uid, origin_index) DO ${spent}
    RETURNING origin_uid AS uid, origin_index AS "index"`.execute(rows.db);
  return result.rows;
}

function withdrawalOf(instance: string, kind: string, { uid, index }: OriginKey, at: number) {
  return {
    instance,
    origin_kind: kind,
    origin_uid: uid,
    origin_index: index,
    what: 'changed',
    at,
    queue: '',
    status: 'withdrawn',
  } as const;
}

import { type Kysely, sql } from 'kysely';
import type { KnownWorker, WorkerNews } from '../../worker/news.ts';
import type { Dialect } from '../dialect.ts';
import type { NewsBacklog, NewsPart, NewsStore } from '../news.ts';
import type { NewsTable, Tables } from '../tables.ts';
import { knownColumns, type NewsWriter } from './news-writer.ts';
import type { FactoryRows } from './open-database.ts';

export class SqlNewsStore implements NewsStore {
  readonly #db: Kysely<Tables>;
  readonly #dialect: Dialect;
  readonly #instance: string;
  readonly #writer: NewsWriter;

  constructor({ db, dialect, instance }: FactoryRows, writer: NewsWriter) {
    this.#db = db;
    this.#dialect = dialect;
    this.#instance = instance;
    this.#writer = writer;
  }

  listen(kinds: ReadonlySet<string>): void {
    this.#writer.listen(kinds);
  }

  written(): ReadonlySet<string> {
    return this.#writer.takeCommitted();
  }

  async next(kind: string, limit: number, part?: NewsPart): Promise<WorkerNews[]> {
    const rows = await this.#db
      .selectFrom('news')
      .selectAll()
      .where('instance', '=', this.#instance)
      .where('origin_kind', '=', kind)
      .$if(part !== undefined, (query) => query.where(this.#isIn(part)))
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map((row) => newsOf(row, row.id));
  }

  async taken(kind: string, upTo: number, part?: NewsPart): Promise<void> {
    await this.#db
      .deleteFrom('news')
      .where('instance', '=', this.#instance)
      .where('origin_kind', '=', kind)
      .where('id', '<=', upTo)
      .$if(part !== undefined, (query) => query.where(this.#isIn(part)))
      .execute();
  }

  #isIn({ queues, ofNoQueue }: NewsPart = { queues: new Set(), ofNoQueue: false }) {
    const names = [...queues, ...(ofNoQueue ? [''] : [])];
    return sql<boolean>`queue IN (${this.#dialect.values(names, 'text')})`;
  }

  async backlog(): Promise<NewsBacklog[]> {
    const result = await sql<NewsBacklog>`
      SELECT waiting.kind, waiting.count, news.at AS oldest FROM (
        SELECT origin_kind AS kind, count(*) AS count, min(id) AS first FROM news
        WHERE instance = ${this.#instance} GROUP BY origin_kind
      ) AS waiting JOIN news ON news.id = waiting.first ORDER BY waiting.kind`.execute(this.#db);
    return result.rows;
  }

  async drop(before: number, most: number): Promise<ReadonlyMap<string, number>> {
    const kinds = await sql<{ kind: string }>`
      SELECT DISTINCT origin_kind AS kind FROM news WHERE instance = ${this.#instance}`.execute(this.#db);
    const dropped = new Map<string, number>();
    for (const { kind } of kinds.rows) {
      const count = await this.#drop(kind, before, most);
      if (count > 0) dropped.set(kind, count);
    }
    return dropped;
  }

  async #drop(kind: string, before: number, most: number): Promise<number> {
    const own = sql`instance = ${this.#instance} AND origin_kind = ${kind}`;
    // The newest that goes because of the number of those after it; none goes where there are fewer.
    const { numAffectedRows = 0n } =
      await sql`DELETE FROM news WHERE ${own} AND (at < ${before} OR id <= coalesce(
        (SELECT id FROM news WHERE ${own} ORDER BY id DESC LIMIT 1 OFFSET ${most}), 0))`.execute(this.#db);
    return Number(numAffectedRows);
  }
}

type Told = Omit<NewsTable, 'id' | 'instance' | 'origin_kind'>;

export function newsOf(row: Told, sequence: number): WorkerNews {
  const known: Partial<Record<keyof KnownWorker, unknown>> = {};
  for (const [fact, column] of facts) known[fact] = row[column];
  return {
    sequence,
    at: row.at,
    what: row.what,
    origin: { uid: row.origin_uid, index: row.origin_index },
    queue: row.queue,
    worker: known as KnownWorker,
  };
}

const facts = Object.entries(knownColumns) as readonly (readonly [keyof KnownWorker, keyof Told])[];

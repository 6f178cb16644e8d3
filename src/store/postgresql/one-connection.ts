import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type pg from 'pg';
import { ThresherError } from '../../worker/errors.ts';
import { endsSession } from './errors.ts';
import { isFenced, type Lease } from './lease.ts';

/** The class of PostgreSQL's codes for them. */
const warnings = '01';
/** Statements that the server keeps prepared: a daemon has some dozens. */
const mostNamed = 200;
/** A longer text seldom comes again. Characters. */
const longestNamed = 8000;
/** After a failed attempt to connect, others fail at once for so long, ms: many wait for their turn. */
const pause = 1000;

export interface ConnectionParts {
  /** Opens a session that is ready for use. */
  readonly open: () => Promise<pg.Client>;
  /** Hears that the database may or may not have carried out a statement that writes. */
  readonly outcomeUnknown: (error: ThresherError) => void;
  readonly monotonic: () => number;
  /** Without one nothing fences what is written: commands, beside a daemon. */
  readonly lease?: Pick<Lease, 'fence' | 'lose'>;
  /** An error with a stable code, where it has a meaning for an operator: the reasons of queues show it. */
  readonly errorOf: (error: unknown) => unknown;
}

/**
 * A single connection for everything that one process asks, in turn: so the order in which rows are written is the order in
 * which they are committed, which readers of news rely on. A lost one is opened again when the next statement comes.
 *
 * The answer to a commit may be lost with the connection. Then memory and database may differ, as after a crash: from
 * then on every statement is refused, so that the process does nothing more that rests on its memory.
 */
export class OneConnection implements PostgresPool {
  readonly options = {};
  readonly #parts: ConnectionParts;
  #session: Session | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #failed: { readonly at: number; readonly error: unknown } | undefined;
  #over: ThresherError | undefined;
  #ended = false;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  async connect(): Promise<PostgresPoolClient> {
    const before = this.#turn;
    const mine = Promise.withResolvers<undefined>();
    this.#turn = mine.promise;
    const release = () => {
      mine.resolve(undefined);
    };
    await before;
    try {
      const session = await this.#live();
      session.release = release;
      return session;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Refuses everything from now on. */
  giveUp(error: ThresherError): void {
    this.#over ??= error;
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#session?.end();
  }

  async #live(): Promise<Session> {
    if (this.#over !== undefined) throw this.#over;
    if (this.#ended) throw new Error('the database is closed');
    if (this.#session !== undefined && !this.#session.isLost) return this.#session;
    const { open, outcomeUnknown, monotonic, errorOf, lease } = this.#parts;
    if (this.#failed !== undefined && monotonic() - this.#failed.at < pause) throw this.#failed.error;
    try {
      const client = await open();
      this.#failed = undefined;
      const unknown = (error: ThresherError) => {
        this.giveUp(error);
        outcomeUnknown(error);
      };
      this.#session = new Session(client, { errorOf, outcomeUnknown: unknown, lease });
      return this.#session;
    } catch (thrown) {
      const error = errorOf(thrown);
      this.#failed = { at: monotonic(), error };
      throw error;
    }
  }
}

type SessionParts = Pick<ConnectionParts, 'errorOf' | 'outcomeUnknown'> & {
  readonly lease: ConnectionParts['lease'] | undefined;
};

/** A session of the server, as Kysely uses it. */
class Session implements PostgresPoolClient {
  release: () => void = () => undefined;
  readonly #client: pg.Client;
  readonly #parts: SessionParts;
  readonly #names = new Map<string, string>();
  #inTransaction = false;
  /** Whether the transaction may have written. */
  #wrote = false;
  /** How many warnings of class 01 the server has sent. */
  #warned = 0;
  #lost: Error | undefined;

  constructor(client: pg.Client, parts: SessionParts) {
    this.#client = client;
    this.#parts = parts;
    client.on('error', (error) => (this.#lost ??= error));
    client.on('notice', ({ code }) => {
      if (code?.startsWith(warnings) === true) this.#warned += 1;
    });
    client.on('end', () => (this.#lost ??= new Error('Connection terminated')));
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  query<R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  query<R>(
    text: string | PostgresCursor<R>,
    values: readonly unknown[] = [],
  ): Promise<PostgresQueryResult<R>> | PostgresCursor<R> {
    if (typeof text !== 'string') throw new Error('cursors are not in use here');
    return this.#query<R>(text, values);
  }

  async end(): Promise<void> {
    await this.#client.end().catch(() => undefined);
  }

  async #query<R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>> {
    const kind = kindOf(text);
    if (kind === 'commit') return this.#commit();
    const isWrite = kind === 'query' && !isRead(text);
    const isAlone = isWrite && !this.#inTransaction;
    if (isAlone && this.#parts.lease !== undefined) {
      await this.#send('BEGIN', 'begin');
      try {
        const result = await this.#send<R>(text, 'query', values);
        this.#wrote = true;
        await this.#commit();
        return result;
      } catch (error) {
        await this.#send('ROLLBACK', 'rollback').catch(() => undefined);
        throw error;
      }
    }
    const result = await this.#send<R>(text, kind, values, isAlone);
    if (kind !== 'begin' && kind !== 'rollback' && !isRead(text)) this.#wrote = true;
    return result;
  }

  /** With the lease's fence before it, in one round trip: where that fails nothing is committed. */
  async #commit<R>(): Promise<PostgresQueryResult<R>> {
    const { lease } = this.#parts;
    const fence = lease !== undefined && this.#wrote ? `${lease.fence}; ` : '';
    const decides = this.#wrote;
    const before = this.#warned;
    try {
      const result = await this.#send<R>(`${fence}COMMIT`, 'commit', [], decides);
      if (decides && this.#warned !== before) throw this.#unreplicated();
      // Of several statements each has a result.
      return Array.isArray(result) ? (result.at(-1) as PostgresQueryResult<R>) : result;
    } catch (error) {
      if (lease !== undefined && isFenced(error)) throw lease.lose();
      throw error;
    }
  }

  /**
   * A commit that was waiting for a synchronous standby succeeds with a warning when its wait is cut short, as by
   * `statement_timeout`: a failover may take it back. Source: PostgreSQL, SyncRepWaitForLSN.
   */
  #unreplicated(): ThresherError {
    const error = unknownOutcome(new Error('the standby of the database did not confirm a commit'));
    this.#parts.outcomeUnknown(error);
    return error;
  }

  /** @param decides whether the database may have written, or not, once the connection is lost */
  async #send<R>(
    text: string,
    kind: ReturnType<typeof kindOf>,
    values: readonly unknown[] = [],
    decides = false,
  ): Promise<PostgresQueryResult<R>> {
    const { errorOf, outcomeUnknown } = this.#parts;
    // What is not sent has no outcome.
    if (this.#lost !== undefined) throw errorOf(this.#lost);
    const name = kind === 'query' ? this.#nameOf(text) : undefined;
    try {
      // With values, even none, a text may hold no second statement.
      const result = await (kind === 'query' || values.length > 0
        ? this.#client.query({ text, values: values.map(plain), ...(name && { name }) })
        : this.#client.query(text));
      if (kind === 'begin') this.#inTransaction = true;
      if (kind === 'commit' || kind === 'rollback') this.#inTransaction = false;
      if (kind !== 'query' && kind !== 'other') this.#wrote = false;
      return result as unknown as PostgresQueryResult<R>;
    } catch (error) {
      const isOver = await this.#isOver(error, decides);
      if (isOver && decides) outcomeUnknown(unknownOutcome(error));
      throw errorOf(error);
    }
  }

  /** Whether the session is over. Where it matters a further statement tells: a server may fail in the middle of a commit. */
  async #isOver(error: unknown, matters: boolean): Promise<boolean> {
    const isOver =
      endsSession(error) ||
      (matters &&
        (await this.#client.query('SELECT 1').then(
          () => false,
          // A transaction that failed answers, too: it has committed nothing.
          (answer: unknown) => endsSession(answer),
        )));
    if (!isOver) return false;
    this.#lost ??= error instanceof Error ? error : new Error(String(error));
    // A statement that the server is silent about would go on after its time is over.
    this.end().catch(() => undefined);
    return true;
  }

  #nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined || text.length > longestNamed || this.#names.size >= mostNamed) return known;
    const name = `t${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }
}

function kindOf(text: string): 'begin' | 'commit' | 'rollback' | 'query' | 'other' {
  const [word = ''] = /^\s*[a-z]+/i.exec(text) ?? [];
  switch (word.trim().toLowerCase()) {
    case 'begin':
      return 'begin';
    case 'commit':
      return 'commit';
    case 'rollback':
      return 'rollback';
    case 'select':
    case 'insert':
    case 'update':
    case 'delete':
      return 'query';
    default:
      return 'other';
  }
}

function isRead(text: string): boolean {
  return /^\s*select\b/i.test(text);
}

/** PostgreSQL's texts have no NUL. */
function plain(value: unknown): unknown {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
}

function unknownOutcome(cause: unknown): ThresherError {
  const message =
    'the connection with the database was lost before it said whether it wrote: the daemon has to start anew';
  return new ThresherError('store-outcome-unknown', message, {}, { cause });
}

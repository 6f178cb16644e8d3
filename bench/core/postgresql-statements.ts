import pg from 'pg';

type Query = (this: pg.Client, ...given: unknown[]) => unknown;

/** Counts every statement that the clients of this process send to PostgreSQL, and the rows of history they commit. */
export class PostgresqlStatements {
  readonly byText = new Map<string, number>();
  total = 0;
  committed = 0;
  #uncommitted = 0;
  #onCommit: () => void = () => undefined;

  /** From now on, for the life of the process. */
  install(): this {
    const client = pg.Client.prototype as unknown as { query: Query };
    const { query } = client;
    const count = (text: string) => {
      this.#count(text);
    };
    const wrote = (text: string, rows: number) => {
      this.#wrote(text, rows);
    };
    client.query = function (...given) {
      const [first] = given;
      const text = typeof first === 'string' ? first : ((first as { text?: string }).text ?? '');
      count(text);
      const answer = query.apply(this, given);
      if (answer instanceof Promise)
        answer.then(
          (result: pg.QueryResult) => {
            wrote(text, result.rowCount ?? 0);
          },
          () => undefined,
        );
      return answer;
    };
    return this;
  }

  reset(): void {
    this.total = 0;
    this.byText.clear();
  }

  /** Resolves with the answer to the commit after which `rows` more rows of history are on disk. */
  committedMore(rows: number): Promise<void> {
    const goal = this.committed + rows;
    return new Promise((resolve) => {
      this.#onCommit = () => {
        if (this.committed >= goal) resolve();
      };
    });
  }

  #count(text: string): void {
    this.total++;
    const short = text.replace(/\s+/g, ' ').trim().slice(0, 90);
    this.byText.set(short, (this.byText.get(short) ?? 0) + 1);
  }

  #wrote(text: string, rows: number): void {
    if (/insert into "?transitions/i.test(text)) this.#uncommitted += rows;
    // The lease's fence may stand before it.
    if (!/(^|;)\s*commit\s*$/i.test(text) || this.#uncommitted === 0) return;
    this.committed += this.#uncommitted;
    this.#uncommitted = 0;
    this.#onCommit();
  }
}

import Database from 'better-sqlite3';

type Verb = 'run' | 'all' | 'get' | 'iterate';
type Execute = (this: Database.Statement, ...values: unknown[]) => unknown;

/** Counts every statement that this process executes, pragmas too, whoever prepared it. */
export class StatementCounter {
  readonly byText = new Map<string, number>();
  total = 0;
  /** Rows of history that were committed. */
  committed = 0;
  onCommit: () => void = () => undefined;
  #uncommitted = 0;

  /** From now on, for the life of the process. */
  install(): this {
    const probe = new Database(':memory:');
    const statement = Object.getPrototypeOf(probe.prepare('SELECT 1')) as Record<Verb, Execute>;
    probe.close();
    const before = (source: string) => {
      this.#count(source);
    };
    const after = (source: string, result: unknown) => {
      this.#wrote(source, (result as Partial<Database.RunResult> | undefined)?.changes ?? 0);
    };
    for (const verb of ['run', 'all', 'get', 'iterate'] as const) {
      const execute = statement[verb];
      statement[verb] = function (...values) {
        before(this.source);
        const result = execute.apply(this, values);
        if (verb === 'run') after(this.source, result);
        return result;
      };
    }
    return this;
  }

  reset(): void {
    this.total = 0;
    this.byText.clear();
  }

  /** Resolves with the commit after which `rows` more rows of history are on disk. */
  committedMore(rows: number): Promise<void> {
    const goal = this.committed + rows;
    return new Promise((resolve) => {
      this.onCommit = () => {
        if (this.committed < goal) return;
        this.onCommit = () => undefined;
        resolve();
      };
    });
  }

  #count(source: string): void {
    this.total++;
    const text = source.replace(/\s+/g, ' ').trim().slice(0, 90);
    this.byText.set(text, (this.byText.get(text) ?? 0) + 1);
  }

  #wrote(source: string, changes: number): void {
    if (/^\s*insert into "?transitions/i.test(source)) this.#uncommitted += changes;
    if (!/^commit/i.test(source) || this.#uncommitted === 0) return;
    this.committed += this.#uncommitted;
    this.#uncommitted = 0;
    this.onCommit();
  }
}

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';

const end = 'that is all';

/**
 * A psql that answers one statement after another: to start it, and to log in, takes twenty times as long as a statement. It ends with
 * this process, and with a statement that fails; the next statement starts another one.
 */
export class Psql {
  readonly #command: string;
  #session: Session | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(command: string) {
    this.#command = command;
  }

  /** Rows of a query. Those who ask at the same time are answered in turn. */
  rows<Row>(query: string): Promise<Row[]> {
    const answer = this.#last.then(() => this.#ask(query));
    this.#last = answer.catch(() => undefined);
    return answer.then((text) => JSON.parse(text) as Row[]);
  }

  async #ask(query: string): Promise<string> {
    const statement = `SELECT coalesce(json_agg(r), '[]')::text || E'\\n${end}' FROM (${query}) r;\n`;
    const known = this.#session;
    if (known !== undefined) {
      try {
        return await known.ask(statement);
      } catch {
        // The database may have been away since the statement before.
        this.#session = undefined;
      }
    }
    const fresh = new Session(this.#command);
    const text = await fresh.ask(statement);
    this.#session = fresh;
    return text;
  }
}

class Session {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<never>;
  #output = '';
  #errors = '';
  #wake: () => void = () => undefined;

  constructor(command: string) {
    this.#child = spawn(command, ['-qAt', '-v', 'ON_ERROR_STOP=1'], { stdio: 'pipe' });
    this.#child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      this.#output += piece;
      if (this.#output.endsWith(`\n${end}\n`)) this.#wake();
    });
    this.#child.stderr.setEncoding('utf8').on('data', (piece: string) => (this.#errors += piece));
    // One that has ended says why on its other output.
    this.#child.stdin.on('error', () => undefined);
    this.#ended = once(this.#child, 'close').then(() => {
      throw new Error(`psql: ${this.#errors}`);
    });
    this.#ended.catch(() => undefined);
    this.#hold(false);
  }

  async ask(statement: string): Promise<string> {
    this.#output = '';
    const answered = new Promise<void>((wake) => (this.#wake = wake));
    this.#hold(true);
    try {
      this.#child.stdin.write(statement);
      await Promise.race([answered, this.#ended]);
    } finally {
      this.#hold(false);
    }
    return this.#output.slice(0, -end.length - 1);
  }

  /** Between statements it keeps no process from its end. */
  #hold(held: boolean): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const one of [this.#child, stdin, stdout, stderr] as { ref?(): void; unref?(): void }[]) {
      if (held) one.ref?.();
      else one.unref?.();
    }
  }
}

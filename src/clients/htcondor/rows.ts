import { randomBytes } from 'node:crypto';
import { beginningFromOutside } from '../../util/beginning.ts';
import { Lines } from './ad-text.ts';

/**
 * Rows of values, as `-af:rt` and `-af:Vt` write them. HTCondor writes a tab in a text of a job as it is, and `formatTime(0, "%n")` makes the end
 * of a line: so each row begins and ends with a word that no job can know, and a job whose values have such characters has no row.
 */
export class Rows {
  readonly #mark = `"${randomBytes(9).toString('hex')}"`;
  readonly #count: number;
  readonly #lines = new Lines();
  /** A row that has more than one line is being passed over. */
  #isBroken = false;

  /** @param names of the attributes; HTCondor reads each as an expression */
  constructor(names: readonly string[]) {
    this.#count = names.length;
    this.fields = [this.#mark, ...names, this.#mark];
  }

  /** Fields of the question. */
  readonly fields: readonly string[];

  /**
   * @returns the values of the rows that are whole now; undefined for one that cannot be read
   * @throws SyntaxError for what is no row
   */
  push(text: string): (readonly string[] | undefined)[] {
    const rows: (readonly string[] | undefined)[] = [];
    for (const line of this.#lines.push(text)) {
      const isEnd = line.endsWith(`\t${this.#mark}`);
      if (this.#isBroken) {
        if (isEnd) rows.push(undefined);
        this.#isBroken = !isEnd;
        continue;
      }
      if (!line.startsWith(`${this.#mark}\t`))
        throw new SyntaxError(`"${beginningFromOutside(line, 100)}" is no row of a job`);
      // One more than a row has tells enough: a value may be nothing but tabs.
      const values = line.split('\t', this.#count + 3);
      if (!isEnd) this.#isBroken = true;
      else rows.push(values.length === this.#count + 2 ? values.slice(1, -1) : undefined);
    }
    return rows;
  }

  /** Whether the last row has ended. */
  get complete(): boolean {
    return this.#lines.complete && !this.#isBroken;
  }
}

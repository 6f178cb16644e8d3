import { type Problem, toPointer } from '../../util/located.ts';
import { shown } from './forms.ts';

type Path = readonly (string | number)[];

/** Problems of one entry that are named. CRIC is another's, and a list of it may have any number of wrong parts. */
const most = 20;

/** Collects what is wrong in an entry. Pointers are into the entry. */
export class Report {
  readonly #problems: Problem[] = [];
  #others = 0;
  readonly #file: string;
  readonly #queue: string;

  constructor(file: string, queue: string) {
    this.#file = file;
    this.#queue = queue;
  }

  /** The first of them, and how many others there are. */
  get problems(): readonly Problem[] {
    if (this.#others === 0) return this.#problems;
    const message = `${this.#others} further remarks on values of the entry in CRIC are left out here`;
    return [...this.#problems, this.#problem([], 'warning', 'cric-value-wrong', message)];
  }

  /** A value has the wrong form: the queue goes on without it. */
  wrong(path: Path, value: unknown, form: string): void {
    this.leftOut(path, `${path.join('.')} is ${shown(value)}`, form);
  }

  leftOut(path: Path, fact: string, form: string): void {
    this.#add(path, 'warning', 'cric-value-wrong', `${fact} in CRIC; it must be ${form}: it is left out`);
  }

  missing(path: Path, message: string): void {
    this.#add(path, 'warning', 'cric-value-wrong', message);
  }

  /** CRIC and the queue file say different things, of which Harvester takes the other. */
  differs(path: Path, message: string): void {
    this.#add(path, 'notice', 'cric-value-differs', message);
  }

  #add(path: Path, severity: Problem['severity'], code: Problem['code'], message: string): void {
    if (this.#problems.length === most) this.#others++;
    else this.#problems.push(this.#problem(path, severity, code, message));
  }

  #problem(path: Path, severity: Problem['severity'], code: Problem['code'], message: string): Problem {
    const queue = this.#queue;
    return { file: this.#file, pointer: toPointer(path), line: 0, severity, code, message, queue };
  }
}

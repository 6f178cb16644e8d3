import { type Problem, toPointer } from '../../util/located.ts';
import { shown } from './forms.ts';

type Path = readonly (string | number)[];

/** Collects what is wrong in an entry. Pointers are into the entry. */
export class Report {
  readonly problems: Problem[] = [];
  readonly #file: string;
  readonly #queue: string;

  constructor(file: string, queue: string) {
    this.#file = file;
    this.#queue = queue;
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
    const queue = this.#queue;
    this.problems.push({
      file: this.#file,
      pointer: toPointer(path),
      line: 0,
      severity,
      code,
      message,
      queue,
    });
  }
}

import { beginningWithoutOwn, behindCut, withoutOwn } from './own-secrets.ts';
import { maskText } from './secrets.ts';

/**
 * What ends a secret of any form that the cut left open: the first or second part of a token, a password in a URL, a text in quotes. One of the
 * two quotes may end a harmless text that has the secret in it.
 */
const closings = ['.AAAAA.@"', "'"];

/**
 * The same as `fromOutside` for a short piece of what may be a long text: no more of it is looked at than tells what the piece holds.
 */
export function beginningFromOutside(text: string, most: number): string {
  const read = most + behindCut;
  if (text.length <= read) return brief(maskText(withoutOwn(text)), most);
  const head = beginningWithoutOwn(text, read);
  const shown = closings.reduce((text, closing) => withoutClosing(maskText(text + closing), closing), head);
  return `${shown.slice(0, most - 3)}...`;
}

/**
 * The same without our own secrets alone, and without dots: for words of thresher, which may have some of a program or server among them, where a
 * cut follows.
 */
export function beginningOfOwn(text: string, most: number): string {
  const read = most + behindCut;
  return (text.length <= read ? withoutOwn(text) : beginningWithoutOwn(text, read)).slice(0, most);
}

/**
 * A long text among the facts of a worker, of which the beginning is shown: cut before it is masked, it could end in the middle of a secret. It
 * is masked when the facts are written, and not each time that somebody looks at the worker.
 */
export class LongText {
  readonly #head: string;
  readonly #most: number;

  constructor(text: string, most: number) {
    this.#head = headOf(text, most);
    this.#most = most;
  }

  /** What JSON shows of it. */
  toJSON(): string {
    return beginningFromOutside(this.#head, this.#most);
  }
}

/** So much of a long text as gives the same `beginningFromOutside`: it tells that there was more. */
export function headOf(text: string, most: number): string {
  return text.slice(0, most + behindCut + 1);
}

/** A form may have taken the first characters of it with the secret. */
function withoutClosing(shown: string, closing: string): string {
  for (let left = closing.length; left > 0; left--)
    if (shown.endsWith(closing.slice(-left))) return shown.slice(0, -left);
  return shown;
}

/** A value of a file or of another program as a sentence shows it: names and paths are shorter, and what is longer is none. */
export function brief(text: string, most = 300): string {
  return text.length > most ? `${text.slice(0, most - 3)}...` : text;
}

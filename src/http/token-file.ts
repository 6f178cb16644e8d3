import { readFileSync, statSync } from 'node:fs';
import { messageOf, ThresherError } from '../worker/errors.ts';

/** No token is longer; whoever names a log or a disk here made a mistake. Bytes. */
const largest = 4096;

/** The token that requests must bring. The file is read again when it changed, so that a rotated token counts at once. */
export class TokenFile {
  readonly #path: string;
  #read: { readonly version: string; readonly token: string } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws ThresherError `http-token-unreadable`: whoever takes a token away means that it opens nothing any more. */
  token(): string {
    let text: string;
    try {
      // Also by inode and size: a file may be replaced twice within one tick of the clock.
      const { mtimeNs, ctimeNs, ino, size, mode } = statSync(this.#path, { bigint: true });
      const version = [mtimeNs, ctimeNs, ino, size].join(' ');
      if (this.#read?.version === version) return this.#read.token;
      if ((mode & 0o170000n) !== 0o100000n) throw this.#wrong('is not a plain file');
      if (size > largest) throw this.#wrong(`has ${size} bytes, which is too long for a token`);
      text = readFileSync(this.#path, 'utf8').trim();
      if (text === '') throw this.#wrong('is empty');
      if (!/^[\x21-\x7e]+$/.test(text)) {
        throw this.#wrong('holds more than one word of plain ASCII characters, which no request can bring');
      }
      this.#read = { version, token: text };
    } catch (error) {
      throw error instanceof ThresherError
        ? error
        : this.#wrong(`cannot be read: ${messageOf(error)}`, error);
    }
    return text;
  }

  #wrong(what: string, cause?: unknown): ThresherError {
    const message = `http.tokenFile ${this.#path} ${what}; it must hold the token, in one line`;
    return new ThresherError('http-token-unreadable', message, { file: this.#path }, { cause });
  }
}

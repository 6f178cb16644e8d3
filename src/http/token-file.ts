import { rememberSecret } from '../util/own-secrets.ts';
import { stat } from 'node:fs/promises';
import { type OperatorFiles, whyUnreadable } from '../util/operator-files.ts';
import { ThresherError } from '../worker/errors.ts';

/** The files with the tokens, as far as the settings name them. */
export interface TokenFiles {
  /** Its token reads. */
  readonly read?: TokenFile | undefined;
  /** Its token reads and writes. */
  readonly write?: TokenFile | undefined;
}

/** @throws ThresherError `http-tokens-same`, `http-token-unreadable` */
export async function writeTokenOf({ read, write }: TokenFiles): Promise<string | undefined> {
  const token = await write?.token();
  if (token === undefined || token !== (await read?.token())) return token;
  const message =
    'http.writeTokenFile holds the token of http.tokenFile, which may only read; write another one';
  throw new ThresherError('http-tokens-same', message);
}

/** The token that requests must bring. The file is read again when it changed, so that a rotated token counts at once. */
export class TokenFile {
  /** The setting that names the file. */
  readonly setting: string;
  readonly #path: string;
  readonly #files: OperatorFiles;
  #read: { readonly version: string; readonly token: string } | undefined;

  constructor(path: string, files: OperatorFiles, setting = 'http.tokenFile') {
    this.setting = setting;
    this.#path = path;
    this.#files = files;
  }

  /**
   * @throws ThresherError `http-token-unreadable`: an operator who removes a token wants it to open nothing any more.
   */
  async token(): Promise<string> {
    let text: string;
    try {
      // Also by inode and size: a file may be replaced twice within one tick of the clock.
      const found = await this.#files.run(this.#path, 'a look at', () => stat(this.#path, { bigint: true }));
      const { mtimeNs, ctimeNs, ino, size } = found;
      const version = [mtimeNs, ctimeNs, ino, size].join(' ');
      if (this.#read?.version === version) return this.#read.token;
      text = (await this.#files.read(this.#path, 'httpToken')).bytes.toString('utf8').trim();
      if (text === '') throw this.#wrong(' is empty');
      if (!/^[\x21-\x7e]+$/.test(text)) {
        throw this.#wrong(' holds more than one word of plain ASCII characters, which no request can bring');
      }
      rememberSecret(text, this.setting);
      this.#read = { version, token: text };
    } catch (error) {
      if (error instanceof ThresherError && error.code === 'http-token-unreadable') throw error;
      throw this.#wrong(`: ${whyUnreadable(error, 'httpToken')}`, error);
    }
    return text;
  }

  #wrong(what: string, cause?: unknown): ThresherError {
    const message = `${this.setting} ${this.#path}${what}; it must hold the token, in one line`;
    return new ThresherError('http-token-unreadable', message, { file: this.#path }, { cause });
  }
}

import { createSecureContext } from 'node:tls';
import { X509Certificate } from 'node:crypto';
import { fileKinds } from '../../util/file-kinds.ts';
import { rememberSecret } from '../../util/own-secrets.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { Clock } from '../../util/clock.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';

/** How thresher shows the PanDA server who it is. Paths are absolute. */
export type LoginSource =
  | { readonly kind: 'x509'; readonly certFile: string; readonly keyFile: string }
  | {
      readonly kind: 'oidc';
      /** The token itself, or the file that has it. */
      readonly token: { readonly text: string } | { readonly file: string };
      /** `VO.role`: the server takes the role from it. */
      readonly origin: string;
    };

export interface Login {
  /** Differs from that of every other content. */
  readonly fingerprint: string;
  /** PEM. */
  readonly tls: { readonly cert?: string; readonly key?: string; readonly ca?: string };
  readonly headers: Readonly<Record<string, string>>;
}

/** How often the files are looked at, ms: a proxy is renewed hours before its end. */
const lookEvery = 5000;

/**
 * The login to one PanDA server. Its files are read anew when they change; half a file that a renewer is just writing leaves the
 * last one in force.
 */
export class PandaLogin {
  readonly #source: LoginSource;
  readonly #caFile: string | undefined;
  readonly #files: OperatorFiles;
  readonly #clock: Clock;
  #current: Login | undefined;
  #problem: string | undefined;
  #looked = '';
  /** Monotonic ms. */
  #lookedAt = -Infinity;

  constructor(
    source: LoginSource,
    caFile: string | undefined,
    { files, clock }: { readonly files: OperatorFiles; readonly clock: Clock },
  ) {
    this.#source = source;
    this.#caFile = caFile;
    this.#files = files;
    this.#clock = clock;
  }

  /** @throws ThresherError `panda-credentials` where there never was a good one */
  async current(): Promise<Login> {
    const now = this.#clock.monotonic();
    if (this.#current !== undefined && now - this.#lookedAt < lookEvery) return this.#current;
    this.#lookedAt = now;
    const seen = await this.#look();
    if (this.#current !== undefined && seen === this.#looked) {
      this.#problem = undefined;
      return this.#current;
    }
    try {
      this.#current = await this.#read(seen);
      this.#looked = seen;
      this.#problem = undefined;
      return this.#current;
    } catch (error) {
      this.#problem = messageOf(error);
      if (this.#current !== undefined) return this.#current;
      throw error;
    }
  }

  /** Why an older content of the files counts; undefined where the files are good. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** After a refusal: the next call reads the files whatever their times say. */
  forget(): void {
    this.#looked = '';
    this.#lookedAt = -Infinity;
  }

  async #look(): Promise<string> {
    const stats = await Promise.all(this.#paths().map((path) => this.#files.stat(path)));
    return stats
      .map((stat) => (stat === undefined ? '-' : `${stat.ino}:${stat.size}:${stat.mtimeMs}`))
      .join(' ');
  }

  #paths(): readonly string[] {
    const source = this.#source;
    const own =
      source.kind === 'x509'
        ? [source.certFile, source.keyFile]
        : 'file' in source.token
          ? [source.token.file]
          : [];
    return this.#caFile === undefined ? own : [...own, this.#caFile];
  }

  async #read(fingerprint: string): Promise<Login> {
    const ca = this.#caFile === undefined ? {} : { ca: await this.#authorities(this.#caFile) };
    const source = this.#source;
    if (source.kind === 'x509') {
      const cert = await this.#text(source.certFile, 'certificate');
      const key = await this.#text(source.keyFile, 'certificate');
      if (!cert.includes('-----BEGIN CERTIFICATE-----')) throw wrong(source.certFile, 'has no certificate');
      if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(key)) throw wrong(source.keyFile, 'has no private key');
      try {
        createSecureContext({ cert, key });
      } catch (error) {
        const how = source.certFile === source.keyFile ? '' : ` with ${source.keyFile}`;
        throw wrong(source.certFile, `cannot be used${how}: ${messageOf(error)}`);
      }
      return { fingerprint, tls: { cert, key, ...ca }, headers: {} };
    }
    const { token, origin } = source;
    const text = 'file' in token ? (await this.#text(token.file, 'token')).trim() : token.text.trim();
    const name = 'file' in token ? token.file : 'auth_token';
    if (!/^[\x21-\x7e]+$/.test(text)) throw wrong(name, 'has no token: it is empty, or has blanks inside');
    // What is remembered is looked for in every message.
    if (text.length > fileKinds.token.largest)
      throw wrong(name, `has a token of more than ${fileKinds.token.largest} characters`);
    rememberSecret(text, 'the login to the PanDA server');
    return { fingerprint, tls: ca, headers: { authorization: `Bearer ${text}`, origin } };
  }

  /** OpenSSL takes what it can read of such a file, and says nothing of the rest: with half a file no server is trusted. */
  async #authorities(path: string): Promise<string> {
    const text = await this.#text(path, 'certificate');
    const begun = text.split('-----BEGIN ').length;
    const certificates = text.match(
      /-----BEGIN (TRUSTED )?CERTIFICATE-----[^-]+-----END (TRUSTED )?CERTIFICATE-----/g,
    );
    if (text.split('-----END ').length !== begun) throw wrong(path, 'has half a certificate at its end');
    if (certificates?.some(isCertificate) !== true) throw wrong(path, 'has no certificate');
    return text;
  }

  async #text(path: string, kind: 'certificate' | 'token'): Promise<string> {
    try {
      const { bytes } = await this.#files.read(path, kind);
      return bytes.toString('utf8');
    } catch (error) {
      throw new ThresherError('panda-credentials', `${path} cannot be read: ${messageOf(error)}`);
    }
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    // The caller says which file it is.
    return false;
  }
}

function wrong(path: string, what: string): ThresherError {
  return new ThresherError('panda-credentials', `${path} ${what}`);
}

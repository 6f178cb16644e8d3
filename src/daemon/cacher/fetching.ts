import { PandaClient } from '../../clients/panda/client.ts';
import { PandaLogin } from '../../clients/panda/login.ts';
import { statisticsBounds } from '../../clients/panda/outcome.ts';
import { fetchFile, type Validators, type WebLogin } from '../../clients/web/fetch.ts';
import { kindOfUse } from '../../config/cric/cache-place.ts';
import type { CacheItem } from '../../config/settings/cache-items.ts';
import type { PandaServer } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { type FileKind, fileKinds } from '../../util/file-kinds.ts';
import { type OperatorFiles, whyUnreadable } from '../../util/operator-files.ts';
import { ThresherError } from '../../worker/errors.ts';

export interface FetchingParts {
  readonly clock: Clock;
  readonly files: OperatorFiles;
  /** For one fetch, ms. */
  readonly timeout: number;
  readonly server: PandaServer | undefined;
  /** Origins of other servers that may ask for the certificate. */
  readonly certificateFor?: readonly string[];
}

export interface Fetched {
  readonly bytes: Buffer;
  readonly validators: Validators;
}

/** How servers refuse one that shows no certificate: by a status, or by an alert of TLS. */
const maybeWithoutCertificate = /HTTP 40[013]$|certificate required|handshake failure/i;

/** Fetches the files of the cacher. It keeps nothing. */
export class Fetching {
  readonly #parts: FetchingParts;
  readonly #login: PandaLogin | undefined;
  #client: PandaClient | undefined;

  constructor(parts: FetchingParts) {
    this.#parts = parts;
    const { server, files, clock } = parts;
    if (server === undefined) return;
    this.#login = new PandaLogin(server.login, server.caFile, { files, clock });
    this.#client = new PandaClient({
      url: server.url,
      login: this.#login,
      clock,
      timeout: Math.min(server.timeout, parts.timeout),
    });
  }

  /**
   * @param known what the server said of the file that is here already
   * @returns undefined where that is still the newest
   * @throws ThresherError with the code of the failure
   */
  fetch(
    { from, shown, use }: CacheItem,
    known: Validators | undefined,
    signal: AbortSignal,
  ): Promise<Fetched | undefined> {
    const kind = kindOfUse(use);
    switch (from.kind) {
      case 'file':
        return this.#read(from.path, kind, known);
      case 'web':
        return this.#get(from.url, kind, known, signal);
      case 'server':
        return this.#ask(from.path, shown, signal);
    }
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.close();
  }

  /** A file that was not touched since has the same content. */
  async #read(path: string, kind: FileKind, known: Validators | undefined): Promise<Fetched | undefined> {
    const { files } = this.#parts;
    const before = await files.stat(path);
    const etag = before === undefined ? undefined : `${before.ino}:${before.size}:${before.mtimeMs}`;
    if (etag !== undefined && etag === known?.etag) return undefined;
    try {
      const { bytes } = await files.read(path, kind);
      return { bytes, validators: etag === undefined ? {} : { etag } };
    } catch (error) {
      throw new ThresherError(
        'file-unreadable',
        `${path}: ${whyUnreadable(error, kind)}`,
        {},
        { cause: error },
      );
    }
  }

  async #get(
    url: string,
    kind: FileKind,
    known: Validators | undefined,
    signal: AbortSignal,
  ): Promise<Fetched | undefined> {
    const { clock, timeout } = this.#parts;
    const asked = { url, largest: fileKinds[kind].largest, timeout, clock, signal };
    const { ca, logins } = await this.#loginsFor(url);
    try {
      const more = { logins, ...(ca !== undefined && { ca }), ...(known && { known }) };
      return await fetchFile({ ...asked, ...more });
    } catch (error) {
      const { origin, protocol } = new URL(url);
      const mayWant = error instanceof ThresherError && maybeWithoutCertificate.test(error.message);
      if (!mayWant || protocol !== 'https:' || origin === logins[0]?.origin) throw error;
      const hint = `if ${origin}, or a server that it leads to, wants a certificate, name that one in certificateFor of cacher`;
      throw new ThresherError(error.code, `${error.message}; ${hint}`, {}, { cause: error });
    }
  }

  /**
   * The login goes to the PanDA server alone, which is the first of these, its certificate to those that the settings name as well; its authorities
   * count for every server.
   */
  async #loginsFor(url: string): Promise<{ readonly ca?: string; readonly logins: readonly WebLogin[] }> {
    const { server, certificateFor = [] } = this.#parts;
    if (server === undefined || this.#login === undefined || !url.startsWith('https:')) return { logins: [] };
    const { origin } = new URL(server.url);
    const named = certificateFor.filter((one) => URL.canParse(one)).map((one) => new URL(one).origin);
    try {
      const { tls, headers } = await this.#login.current();
      const { ca, ...own } = tls;
      const logins = named.map((other) => ({ origin: other, tls: own, headers: {} }));
      return { ...(ca !== undefined && { ca }), logins: [{ origin, tls: own, headers }, ...logins] };
    } catch (error) {
      // Another server needs no login.
      if ([origin, ...named].includes(new URL(url).origin)) throw error;
      return { logins: [] };
    }
  }

  async #ask(path: string, shown: string, signal: AbortSignal): Promise<Fetched> {
    if (this.#client === undefined)
      throw new ThresherError(
        'panda-credentials',
        `${shown} needs a PanDA server with a login, and pandacon of the settings names none`,
      );
    const outcome = await this.#client.call({ method: 'GET', path, bounds: statisticsBounds }, signal);
    if (outcome.kind === 'failed') throw new ThresherError(outcome.code, `${shown}: ${outcome.message}`);
    return { bytes: Buffer.from(JSON.stringify(outcome.data ?? null)), validators: {} };
  }
}

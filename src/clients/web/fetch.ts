import type { Readable } from 'node:stream';
import { getCACertificates } from 'node:tls';
import { createGunzip } from 'node:zlib';
import type { Clock } from '../../util/clock.ts';
import { Gathered } from '../../util/gathered.ts';
import { fromOutside, holdsOwn, rememberLogin, rememberUrl } from '../../util/own-secrets.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';

/** Marks that the server gave the file that is here already, so that it need not send the same again. */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

export interface WebFile {
  readonly bytes: Buffer;
  readonly validators: Validators;
}

export interface WebRequest {
  readonly url: string;
  /** Marks of the file that is here already. */
  readonly known?: Validators;
  /** Bytes, also after unpacking. */
  readonly largest: number;
  /** For all of it, ms. */
  readonly timeout: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Logins, each for one origin (`https://HOST:PORT`). No other gets it. */
  readonly logins?: readonly WebLogin[];
  /** Authorities (PEM) beside those of the system. */
  readonly ca?: string;
}

export interface WebLogin {
  readonly origin: string;
  readonly tls: { readonly cert?: string; readonly key?: string };
  readonly headers: Readonly<Record<string, string>>;
}

/** A server may answer from another place of its own; a longer way is a circle. */
const mostRedirects = 5;
const redirects: readonly number[] = [301, 302, 303, 307, 308];

/**
 * Fetches a file by HTTP, whole or not at all. TLS is always verified.
 * @returns undefined where the file is as `known` says
 * @throws ThresherError `web-unreachable`, `web-late`, `web-refused`, `web-redirect`, `web-too-large`
 */
export async function fetchFile(asked: WebRequest): Promise<WebFile | undefined> {
  const { clock, timeout, signal, url } = asked;
  const over = new AbortController();
  const late = new AbortController();
  const timer = clock.sleep(timeout, over.signal).then(() => {
    if (!over.signal.aborted) late.abort();
  });
  try {
    return await follow(asked, AbortSignal.any([signal, late.signal]));
  } catch (error) {
    const shown = fromOutside(url);
    if (late.signal.aborted)
      throw new ThresherError('web-late', `${shown} was not there whole within ${timeout / 1000} s`);
    if (error instanceof ThresherError) throw error;
    throw new ThresherError(
      'web-unreachable',
      `${shown}: ${fromOutside(reasonOf(error))}`,
      {},
      { cause: error },
    );
  } finally {
    over.abort();
    await timer;
  }
}

async function follow(asked: WebRequest, signal: AbortSignal): Promise<WebFile | undefined> {
  // A server that leads to its login page tells that one by which address it was asked.
  rememberUrl(asked.url);
  let url = new URL(asked.url);
  for (let way = 0; way <= mostRedirects; way++) {
    const found = await fetchOnce(url, asked, signal);
    if (!(found instanceof URL)) return found;
    if (url.protocol === 'https:' && found.protocol !== 'https:')
      throw failed('web-redirect', asked, `leads to ${fromOutside(found.href)}, without TLS`);
    url = found;
  }
  throw failed('web-redirect', asked, `leads elsewhere more than ${mostRedirects} times`);
}

/** @returns the place to which the server leads, where it does */
async function fetchOnce(
  url: URL,
  asked: WebRequest,
  signal: AbortSignal,
): Promise<WebFile | URL | undefined> {
  const { known, ca, logins = [], timeout } = asked;
  const own = logins.find(({ origin }) => origin === url.origin);
  const authorities = ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] };
  // A daemon that fetches no file does not load this package.
  const { Agent, request } = await import('undici');
  const agent = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    // Said here, so that no NODE_TLS_REJECT_UNAUTHORIZED of the environment switches it off.
    connect: { ...authorities, ...own?.tls, rejectUnauthorized: true, timeout },
  });
  try {
    const headers = {
      accept: 'application/json, */*',
      'accept-encoding': 'gzip',
      ...(url.username !== '' && { authorization: basic(url) }),
      ...(known?.etag !== undefined && { 'if-none-match': known.etag }),
      ...(known?.lastModified !== undefined && { 'if-modified-since': known.lastModified }),
      ...own?.headers,
    };
    const bare = new URL(url);
    bare.username = '';
    bare.password = '';
    const answer = await request(bare, { headers, dispatcher: agent, signal });
    const { statusCode: status } = answer;
    const header = (name: string) => {
      const value = answer.headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
    if (status === 304 && known !== undefined) return undefined;
    if (redirects.includes(status)) {
      const to = header('location');
      if (to === undefined || !URL.canParse(to, bare.href))
        throw failed('web-redirect', asked, 'leads nowhere');
      const next = new URL(to, bare.href);
      if (!['http:', 'https:'].includes(next.protocol))
        throw failed('web-redirect', asked, `leads to ${fromOutside(next.href)}`);
      return next;
    }
    if (status !== 200) throw failed('web-refused', asked, `answers with HTTP ${status}`);
    const bytes = await readBody(answer.body, header('content-encoding'), asked);
    // They are kept on the disk: what a server sends back of a login is no mark of a file.
    const [etag, lastModified] = ['etag', 'last-modified'].map((name) => {
      const value = header(name);
      return value === undefined || holdsOwn(value) ? undefined : value;
    });
    return {
      bytes,
      validators: {
        ...(etag !== undefined && { etag }),
        ...(lastModified !== undefined && { lastModified }),
      },
    };
  } finally {
    await agent.destroy();
  }
}

async function readBody(body: Readable, encoding: string | undefined, asked: WebRequest): Promise<Buffer> {
  if (encoding !== undefined && !['gzip', 'x-gzip', 'identity'].includes(encoding))
    throw failed('web-refused', asked, `answers in the encoding ${encoding}, which was not asked for`);
  const packed = encoding !== undefined && encoding !== 'identity';
  const stream = packed ? unpacked(body) : body;
  const gathered = new Gathered();
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    gathered.add(chunk);
    if (gathered.length > asked.largest)
      throw failed('web-too-large', asked, `has more than ${Math.floor(asked.largest / 1_048_576)} MB`);
  }
  return gathered.take();
}

/** A body that breaks off is a failure also where its packed part ends well. */
function unpacked(body: Readable): Readable {
  const gunzip = createGunzip();
  body.on('error', (error) => gunzip.destroy(error));
  return body.pipe(gunzip);
}

function basic({ username, password }: URL): string {
  return `Basic ${rememberLogin(decodeURIComponent(username), decodeURIComponent(password))}`;
}

function failed(
  code: 'web-refused' | 'web-redirect' | 'web-too-large',
  { url }: WebRequest,
  what: string,
): ThresherError {
  return new ThresherError(code, fromOutside(`${url} ${what}`));
}

/** An error of several addresses has its reasons inside. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ');
  return messageOf(error);
}

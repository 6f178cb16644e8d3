import { Gathered } from '../../util/gathered.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type * as Undici from 'undici';
import type { Clock } from '../../util/clock.ts';
import { isOfUnknownAuthority, messageOf } from '../../worker/errors.ts';
import type { Login, PandaLogin } from './login.ts';
import {
  type AnswerBounds,
  outcomeOf,
  type PandaFailure,
  type PandaOutcome,
  usualBounds,
} from './outcome.ts';

export interface PandaCall {
  readonly method: 'GET' | 'POST';
  /** `harvester/heartbeat` */
  readonly path: string;
  /** POST: the JSON body. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** How large an answer may be. Default: `usualBounds`. */
  readonly bounds?: AnswerBounds;
  /** GET: lists are repeated. */
  readonly query?: Readonly<Record<string, string | number | readonly (string | number)[]>>;
}

export interface PandaClientOptions {
  /** `https://pandaserver.example.org:25443/api/v1`, without a slash at its end. */
  readonly url: string;
  readonly login: PandaLogin;
  readonly clock: Clock;
  /** For one call, ms. */
  readonly timeout: number;
}

/** Larger bodies are sent with gzip, bytes. */
const zipFrom = 2048;
const zip = promisify(gzip);
/** So long a difference of the clocks counts before one that is known less well takes its place, ms. */
const differenceLasts = 300_000;

/** How far the server's clock is ahead of ours, and how well that is known, ms. */
export interface ClockDifference {
  readonly ahead: number;
  /** It is at most so much more or less. */
  readonly within: number;
}

/**
 * Calls of one PanDA server: connections that are kept, TLS that is always verified, answers as outcomes. It never throws and
 * never tries again by itself.
 */
export class PandaClient {
  readonly #options: PandaClientOptions;
  #agent: { readonly fingerprint: string; readonly agent: Undici.Agent } | undefined;
  #difference: (ClockDifference & { readonly at: number }) | undefined;
  /** Errors of connections that never came about: no byte of a request went out. */
  readonly #unconnected = new WeakSet<Error>();
  /** Alerts that came on connections which stood already. */
  readonly #told = new WeakSet<Error>();
  /** The same on connections that stood already, by their local ports: undici tells only that such a connection ended. */
  readonly #alerts = new Map<number, Error>();

  constructor(options: PandaClientOptions) {
    this.#options = options;
  }

  /** undefined before the server's first answer. */
  get serverAhead(): ClockDifference | undefined {
    return this.#difference;
  }

  async call(call: PandaCall, signal: AbortSignal): Promise<PandaOutcome<unknown>> {
    const { login, timeout, clock } = this.#options;
    let current: Login;
    try {
      current = await login.current();
    } catch (error) {
      return failed('panda-credentials', messageOf(error), false);
    }
    const over = new AbortController();
    const late = new AbortController();
    const timer = clock
      .sleep(timeout, over.signal)
      .then(() => {
        if (!over.signal.aborted) late.abort();
      })
      .catch(() => undefined);
    let outcome: PandaOutcome<unknown>;
    try {
      outcome = await this.#send(call, current, AbortSignal.any([signal, late.signal]));
    } catch (error) {
      outcome = late.signal.aborted
        ? failed(
            'panda-no-answer',
            `${this.#options.url} did not answer ${call.path} within ${timeout / 1000} s`,
            true,
          )
        : this.#noAnswer(error, current);
    } finally {
      over.abort();
      await timer;
    }
    if (outcome.kind === 'ok') return outcome;
    if (loginFailures.has(outcome.code)) login.forget();
    const { problem } = login;
    if (problem === undefined || outcome.code === 'panda-credentials') return outcome;
    return { ...outcome, message: `${outcome.message} (the login is an older one: ${problem})` };
  }

  /** Ends everything at once. */
  async close(): Promise<void> {
    const last = this.#agent;
    this.#agent = undefined;
    await last?.agent.destroy();
  }

  async #send(
    { method, path, body, query = {}, bounds = usualBounds }: PandaCall,
    login: Login,
    signal: AbortSignal,
  ) {
    const url = new URL(`${this.#options.url}/${path}`);
    for (const [name, value] of Object.entries(query))
      for (const one of [value].flat()) url.searchParams.append(name, String(one));
    // The server compares both headers as texts: with a charset it takes neither.
    const headers: Record<string, string> = { accept: 'application/json', ...login.headers };
    let content: Buffer | undefined;
    if (method === 'POST') {
      headers['content-type'] = 'application/json';
      content = Buffer.from(JSON.stringify(body ?? {}));
      if (content.length >= zipFrom) {
        content = await zip(content);
        headers['content-encoding'] = 'gzip';
      }
      headers['content-length'] = String(content.length);
    }
    // A daemon without a PanDA server does not load this package.
    const undici = await import('undici');
    const dispatcher = this.#dispatcher(undici, login);
    const begun = this.#options.clock.now();
    const answer = await undici.request(url, { method, headers, body: content ?? null, dispatcher, signal });
    this.#noteTime(answer.headers['date'], begun);
    const said = new Gathered();
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      said.add(chunk);
      if (said.length > bounds.bytes)
        throw new Error(`its answer to ${path} is larger than ${bounds.bytes} bytes`);
    }
    return outcomeOf({ status: answer.statusCode, body: said.take().toString('utf8') }, bounds);
  }

  /** The header has whole seconds, cut, and may be from any moment between the request and its answer. */
  #noteTime(date: string | string[] | undefined, begun: number): void {
    const said = typeof date === 'string' ? Date.parse(date) : NaN;
    const { clock } = this.#options;
    const [now, at] = [clock.now(), clock.monotonic()];
    if (Number.isNaN(said) || now < begun) return;
    const next = { ahead: said + 500 - (begun + now) / 2, within: 500 + (now - begun) / 2, at };
    const last = this.#difference;
    const counts =
      last === undefined ||
      next.within <= last.within ||
      at - last.at > differenceLasts ||
      // One of the clocks was set.
      Math.abs(next.ahead - last.ahead) > next.within + last.within;
    if (counts) this.#difference = next;
  }

  #noAnswer(thrown: unknown, { tls }: Login): PandaFailure {
    const { url } = this.#options;
    const error = thrown instanceof Error ? thrown : new Error(messageOf(thrown));
    const port = error instanceof Object && 'socket' in error ? portOf(error.socket) : undefined;
    const alert = this.#told.has(error) ? error : port === undefined ? undefined : this.#alerts.get(port);
    if (port !== undefined) this.#alerts.delete(port);
    const never = this.#unconnected.has(error);
    const openssl = opensslOf(alert ?? error);
    if (openssl === undefined || !(never || alert !== undefined))
      return failed(
        never ? 'panda-unreachable' : 'panda-no-answer',
        `${url}: ${messageOf(error)}${isOfUnknownAuthority(error) ? ': ca_cert in pandacon names the file of its authority' : ''}`,
        !never,
      );
    const { error: name, says } = openssl;
    const shows = tls.cert === undefined ? 'a login without a client certificate' : 'the client certificate';
    // A server without TLS 1.3 ends the handshake so where no certificate is shown.
    // The server ends such a handshake before it reads a request, also where a part of it is under way already.
    if (refusesCertificate.test(name))
      return failed('panda-certificate', `${url}: the server refuses ${shows} (${says})`, false);
    const hint = noTls.test(name)
      ? ': what answers there speaks no TLS, see the port'
      : name.endsWith('HANDSHAKE_FAILURE')
        ? `: it may want other ciphers, or not take ${shows}`
        : '';
    return failed(never ? 'panda-unreachable' : 'panda-no-answer', `${url}: ${says}${hint}`, !never);
  }

  /** A changed certificate needs connections of its own; those under way end by themselves. */
  #dispatcher(undici: typeof Undici, { fingerprint, tls }: Login): Undici.Agent {
    const last = this.#agent;
    if (last?.fingerprint === fingerprint) return last.agent;
    last?.agent.close().catch(() => undefined);
    const { timeout } = this.#options;
    // Said here, so that no NODE_TLS_REJECT_UNAUTHORIZED of the environment switches it off.
    const connect = undici.buildConnector({ ...tls, rejectUnauthorized: true, timeout });
    const agent = new undici.Agent({
      connections: 4,
      keepAliveTimeout: 30_000,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (options, done) => {
        connect(options, (error, socket) => {
          if (error !== null) {
            this.#unconnected.add(error);
            done(error, null);
            return;
          }
          const { localPort } = socket;
          // Of the connection that had this port before.
          if (localPort !== undefined) this.#alerts.delete(localPort);
          socket.prependListener('error', (alert: Error) => {
            if (opensslOf(alert) === undefined) return;
            this.#told.add(alert);
            if (localPort !== undefined) this.#alerts.set(localPort, alert);
          });
          done(null, socket);
        });
      },
    });
    this.#agent = { fingerprint, agent };
    return agent;
  }
}

const loginFailures: ReadonlySet<string> = new Set(['panda-token', 'panda-role', 'panda-certificate']);

/** Alerts that say that a server does not take the certificate of the login. Source: RFC 5246 7.2.2, RFC 8446 6.2. */
const refusesCertificate =
  /_ALERT_(NO_CERTIFICATE|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_\w+|UNKNOWN_CA|ACCESS_DENIED)/;
/** The first bytes of an answer are none of TLS. */
const noTls = /_(WRONG_VERSION_NUMBER|HTTP_REQUEST|PACKET_LENGTH_TOO_LONG|RECORD_LAYER_FAILURE)$/;

/** What OpenSSL says, without the places in its source; undefined of other errors. */
function opensslOf(error: Error): { readonly error: string; readonly says: string } | undefined {
  const name = 'code' in error ? String(error.code) : '';
  if (!name.startsWith('ERR_SSL_')) return undefined;
  const [, says = error.message] = /routines:[^:]*:([^:]+)/.exec(error.message) ?? [];
  return { error: name, says };
}

function portOf(socket: unknown): number | undefined {
  const port = typeof socket === 'object' && socket !== null && 'localPort' in socket ? socket.localPort : 0;
  return typeof port === 'number' && port > 0 ? port : undefined;
}

function failed(code: PandaFailure['code'], message: string, maybeDone: boolean): PandaFailure {
  return { kind: 'failed', code, message: fromOutside(message), maybeDone };
}

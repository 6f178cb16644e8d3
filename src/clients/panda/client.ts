import { fromOutside } from '../../util/own-secrets.ts';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type * as Undici from 'undici';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../worker/errors.ts';
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
/** The server's time is taken from answers that are no slower than this, ms: so it is known to a second. */
const slowest = 1000;

/**
 * Calls of one PanDA server: connections that are kept, TLS that is always verified, answers as outcomes. It never throws and
 * never tries again by itself.
 */
export class PandaClient {
  readonly #options: PandaClientOptions;
  #agent: { readonly fingerprint: string; readonly agent: Undici.Agent } | undefined;

  #serverAhead: number | undefined;

  constructor(options: PandaClientOptions) {
    this.#options = options;
  }

  /** How far the server's clock is ahead of ours, ms, to a second; undefined before its first answer. */
  get serverAhead(): number | undefined {
    return this.#serverAhead;
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
        : noAnswer(this.#options.url, error);
    } finally {
      over.abort();
      await timer;
    }
    if (outcome.kind === 'failed' && loginFailures.has(outcome.code)) login.forget();
    return outcome;
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
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > bounds.bytes) throw new Error(`its answer to ${path} is larger than ${bounds.bytes} bytes`);
      chunks.push(chunk);
    }
    return outcomeOf({ status: answer.statusCode, body: Buffer.concat(chunks).toString('utf8') }, bounds);
  }

  /** The header has whole seconds, cut. An answer that took long says too little. */
  #noteTime(date: string | string[] | undefined, begun: number): void {
    const said = typeof date === 'string' ? Date.parse(date) : NaN;
    const now = this.#options.clock.now();
    if (Number.isNaN(said) || now - begun > slowest) return;
    this.#serverAhead = said + 500 - (begun + now) / 2;
  }

  /** A changed certificate needs connections of its own; those under way end by themselves. */
  #dispatcher(undici: typeof Undici, { fingerprint, tls }: Login): Undici.Agent {
    const last = this.#agent;
    if (last?.fingerprint === fingerprint) return last.agent;
    last?.agent.close().catch(() => undefined);
    const { timeout } = this.#options;
    const agent = new undici.Agent({
      connections: 4,
      keepAliveTimeout: 30_000,
      headersTimeout: 0,
      bodyTimeout: 0,
      // Said here, so that no NODE_TLS_REJECT_UNAUTHORIZED of the environment switches it off.
      connect: { ...tls, rejectUnauthorized: true, timeout },
    });
    this.#agent = { fingerprint, agent };
    return agent;
  }
}

const loginFailures: ReadonlySet<string> = new Set(['panda-token', 'panda-role', 'panda-certificate']);

/** Failures before any byte of the request went out. */
const neverSent: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
  ...['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'],
  ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'ERR_TLS_CERT_ALTNAME_INVALID'],
]);

function noAnswer(url: string, error: unknown): PandaFailure {
  const errno = error instanceof Error && 'code' in error ? String(error.code) : '';
  const never = neverSent.has(errno);
  return failed(never ? 'panda-unreachable' : 'panda-no-answer', `${url}: ${messageOf(error)}`, !never);
}

function failed(code: PandaFailure['code'], message: string, maybeDone: boolean): PandaFailure {
  return { kind: 'failed', code, message: fromOutside(message), maybeDone };
}

import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../worker/errors.ts';
import type { Access, Current } from './access.ts';
import { givenUp } from './connection-failures.ts';
import { type Asked, failureOf, KubernetesError, parseRetryAfter } from './errors.ts';
import type { Pacer } from './pacer.ts';
import { type Query, withQuery } from './paths.ts';
import type { Answer, Call, Headers, Opened, Transport } from './transport.ts';

export interface RequestsOptions {
  readonly access: Access;
  /** Shared by all clients of a cluster. */
  readonly pacer: Pacer;
  readonly clock: Clock;
  /** "thresher/0.1.0", as the server's audit log shows it. */
  readonly userAgent: string;
  /** Requests at once. Default 32. */
  readonly connections?: number;
  /** Longest wait for an answer, ms. Default 30 s. */
  readonly timeout?: number;
}

export interface Request {
  readonly method: Call['method'];
  /** Path in the API, without a query. */
  readonly path: string;
  readonly query?: Query;
  readonly content?: { readonly type: string; readonly text: string };
  /** Default: JSON. */
  readonly accept?: string | undefined;
  readonly signal: AbortSignal;
  /** Longest wait for an answer, ms; default: that of all. */
  readonly timeout?: number | undefined;
  /** A refusal for now (429) is final, and delays no other caller. */
  readonly once?: boolean | undefined;
}

/** How often a request goes that the server asks to send later. */
const patience = 5;
/** Pause where the server asks for patience without saying for how long, ms. */
const defaultPause = 1000;
/** The longest pause that is taken from a server, ms. */
const longestPause = 300_000;
/** Clocks that differ by less agree, ms. */
const agreeing = 2000;
/** Longest wait for an answer, ms. */
const defaultTimeout = 30_000;

interface Connection {
  readonly current: Current;
  readonly transport: Transport;
}

/** A server's address, taken apart once for all requests. */
interface Place {
  readonly server: string;
  readonly origin: string;
  /** A server may stand behind a path, as with Rancher; without a slash at its end. */
  readonly prefix: string;
}

/**
 * Requests to one cluster: with its credentials, at its pace, over its connections. They reject with a KubernetesError for
 * every answer that is no success, or with what `Access.current` throws.
 */
export class Requests {
  readonly #options: RequestsOptions;
  #connected: { readonly key: string; readonly transport: Transport } | undefined;
  #server = 'the API server';
  #place: Place | undefined;
  /** What the server's clock shows where our monotonic one is at 0, ms, by its last answer. */
  #serverEpoch: number | undefined;
  #hasAnswered = false;
  #closed = false;

  /** Nothing is read or connected before the first request. */
  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  get clockOffset(): number {
    if (this.#serverEpoch === undefined) return 0;
    const { clock } = this.#options;
    // Our wall clock may have been set since the last answer, and the monotonic one never is.
    const offset = Math.round(this.#serverEpoch + clock.monotonic() - clock.now());
    return Math.abs(offset) < agreeing ? 0 : offset;
  }

  /** Whether the cluster has given a successful answer: its address and login were right. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** The request, as errors show it. */
  asked({ method, path }: Pick<Request, 'method' | 'path'>): Asked {
    return { server: this.#server, method, path };
  }

  async send(request: Request): Promise<Answer> {
    const call = callOf(request);
    return this.#attempt(request, ({ transport, current }, timeout) =>
      transport.send(this.#signed(call, current), timeout, request.signal),
    );
  }

  /** @param silence longest time without a byte, ms; default: any. */
  async open(request: Request, silence?: number): Promise<AsyncIterable<Buffer>> {
    const call = callOf(request);
    const opened = await this.#attempt<Opened>(request, ({ transport, current }, timeout) =>
      transport.open(this.#signed(call, current), timeout, request.signal, silence),
    );
    return opened.chunks;
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#options.access.close();
    await this.#connected?.transport.destroy();
  }

  /** One request, again after a refusal that cannot have done anything: new credentials once, and the server's pauses. */
  async #attempt<T extends Answer>(
    request: Request,
    go: (connection: Connection, timeout: number) => Promise<T>,
  ): Promise<T> {
    const { access, pacer } = this.#options;
    const { signal, timeout = this.#options.timeout ?? defaultTimeout } = request;
    let renewed = false;
    for (let attempt = 1; ; attempt++) {
      if (!(await pacer.admitted(timeout, signal))) throw this.#notAdmitted(request);
      const connection = await this.#connect(request);
      let answer: T;
      let failure: KubernetesError | undefined;
      try {
        answer = await go(connection, timeout);
        failure = this.#failureIn(answer, request);
      } catch (error) {
        // Once it may have been sent, an error of whatever kind says nothing of what the server did.
        throw error instanceof KubernetesError ? error : unreadable(this.asked(request), error);
      }
      if (failure === undefined) return answer;
      if (failure.code === 'kubernetes-too-many-requests' && request.once !== true) {
        pacer.pause(Math.min(failure.retryAfter ?? defaultPause, longestPause));
        if (attempt < patience) continue;
      }
      if (failure.code !== 'kubernetes-unauthorized' || renewed) throw failure;
      renewed = true;
      const { generation } = connection.current;
      const next = await this.#unlessEnded(request, access.renew(generation, signal));
      if (next.generation === generation) throw failure;
    }
  }

  /** @returns undefined for a success */
  #failureIn(answer: Answer, request: Request): KubernetesError | undefined {
    const { status, body } = answer;
    this.#noteTime(headerOf(answer, 'date'));
    if (status >= 200 && status < 300) {
      this.#hasAnswered = true;
      return undefined;
    }
    const retryAfter = parseRetryAfter(headerOf(answer, 'retry-after'), this.#options.clock.now());
    return failureOf(this.asked(request), status, body, retryAfter);
  }

  /** The server's word for the time has whole seconds, and took its way here. */
  #noteTime(date: string | undefined): void {
    const said = Date.parse(date ?? '');
    if (!Number.isNaN(said)) this.#serverEpoch = said + 500 - this.#options.clock.monotonic();
  }

  async #connect(request: Request): Promise<Connection> {
    const { access, clock, connections = 32 } = this.#options;
    const current = await this.#unlessEnded(request, access.current(request.signal));
    const options = { origin: this.#placeOf(current).origin, connections, clock };
    const transport =
      this.#connected?.key === current.connectionKey
        ? this.#connected.transport
        : await this.#replaced(current, options);
    if (this.#closed || request.signal.aborted) throw givenUp(this.asked(request), false);
    return { current, transport };
  }

  /** New connections, for a new server or certificate; calls on the old ones end by themselves. */
  async #replaced(
    current: Current,
    options: { readonly origin: string; readonly connections: number; readonly clock: Clock },
  ): Promise<Transport> {
    // A daemon without Kubernetes queues does not load this module.
    const { Transport } = await import('./transport.ts');
    // Another caller made it during the import.
    if (this.#connected?.key === current.connectionKey) return this.#connected.transport;
    const { proxyUrl } = current.access;
    const transport = new Transport({ ...options, tls: current.tls, ...(proxyUrl && { proxyUrl }) });
    const old = this.#connected?.transport;
    this.#connected = { key: current.connectionKey, transport };
    this.#server = current.access.server;
    old?.close().catch(() => undefined);
    return transport;
  }

  async #unlessEnded<T>(request: Request, waited: Promise<T>): Promise<T> {
    try {
      return await waited;
    } catch (error) {
      const ended = this.#closed || request.signal.aborted;
      throw ended ? givenUp(this.asked(request), false) : error;
    }
  }

  #signed(call: Call, current: Current): Call {
    const { prefix } = this.#placeOf(current);
    const own = { accept: 'application/json', 'user-agent': this.#options.userAgent };
    return { ...call, path: prefix + call.path, headers: { ...own, ...call.headers, ...current.headers } };
  }

  #placeOf({ access: { server } }: Current): Place {
    const place = this.#place?.server === server ? this.#place : placeOf(server);
    this.#place = place;
    return place;
  }

  #notAdmitted(request: Request): KubernetesError {
    const asked = this.asked(request);
    const retryAfter = this.#options.pacer.pausedFor;
    if (request.signal.aborted) return givenUp(asked, false);
    const message = `${asked.server} asked for ${Math.ceil(retryAfter / 1000)} s without requests`;
    const code = 'kubernetes-too-many-requests';
    return new KubernetesError({ code, message, retryAfter, maybeDone: false }, { ...asked });
  }
}

function callOf({ method, path, query, content, accept }: Request): Call {
  const headers: Headers = {
    ...(accept && { accept }),
    ...(content && { 'content-type': content.type }),
  };
  return { method, path: withQuery(path, query), headers, ...(content && { body: content.text }) };
}

/** A header's text: of one that stands several times the first. */
function headerOf({ headers }: Answer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

/** The failure of a request whose answer nobody knows how to take: what the server did is open. */
function unreadable(asked: Asked, error: unknown): KubernetesError {
  const message = `${asked.server} gave an answer to ${asked.method} ${asked.path} that cannot be read: ${messageOf(error)}`;
  const failure = { code: 'kubernetes-no-api', message, maybeDone: true } as const;
  return new KubernetesError(failure, { ...asked }, { cause: error });
}

function placeOf(server: string): Place {
  const { origin, pathname } = new URL(server);
  return { server, origin, prefix: pathname.replace(/\/$/, '') };
}

import { Gathered } from '../../util/gathered.ts';
import { type Dispatcher, Pool, ProxyAgent } from 'undici';
import type { Clock } from '../../util/clock.ts';
import { Body, type Ending, type Exchange } from './body.ts';
import { givenUp, noAnswer, tooLarge, tooLate } from './connection-failures.ts';
import { Deadlines } from './deadlines.ts';
import type { KubernetesError } from './errors.ts';
import { largestAnswer } from './lines.ts';

/** The proof that a server is the right one, and the client's own identity. PEM. */
export interface TlsOptions {
  readonly ca?: string | string[];
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface TransportOptions {
  /** "https://10.0.0.1:6443" */
  readonly origin: string;
  readonly tls: TlsOptions;
  /** http:, https: or socks5: */
  readonly proxyUrl?: string;
  /** Connections for requests; those of streams come on top. */
  readonly connections: number;
  readonly clock: Clock;
}

/** By names in small letters; a list is a header that stands several times. */
export type Headers = Readonly<Record<string, string | string[]>>;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query. */
  readonly path: string;
  readonly headers: Headers;
  readonly body?: string;
}

export interface Answer {
  readonly status: number;
  /** Node's own type says of most of them that they stand once, and whoever answers may send each as often as it likes. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** An answer whose body is read as it comes. The body of a refusal is short, and present as a whole. */
export interface Opened extends Answer {
  /** Throws a KubernetesError when the connection breaks; leaving the loop closes it. */
  readonly chunks: AsyncIterable<Buffer>;
}

/** The events of an answer as it comes in. One of `end` and `lost` comes last, once. */
interface Sink {
  start(status: number, headers: Answer['headers']): void;
  data(chunk: Buffer): void;
  end(): void;
  lost(error: KubernetesError): void;
}

/** Bytes of one answer. Lists come in pages, which get smaller where they have more. */
const largest = { success: largestAnswer, refusal: 1024 * 1024 } as const;

/** Idle connections are closed after so many ms: sooner than load balancers do it, which may cost a request its answer. */
const keepAlive = 30_000;

/**
 * HTTP/1.1 over connections that are kept: what an API server answers, or a KubernetesError that says whether the request
 * may have arrived. Handlers are given to undici directly; its promise interface costs more than all that is done here.
 */
export class Transport {
  readonly #origin: string;
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #requests: Dispatcher;
  /** A watch holds its connection for minutes: many of them must not keep requests waiting. */
  readonly #streams: Dispatcher;

  constructor({ origin, tls, proxyUrl, connections, clock }: TransportOptions) {
    this.#origin = origin;
    this.#clock = clock;
    this.#deadlines = new Deadlines(clock);
    const dispatcher = (atMost: number | null): Dispatcher => {
      // Timeouts are kept here, by the injected clock; HTTP/2 was measured to be far slower.
      const options = { connections: atMost, keepAliveTimeout: keepAlive, headersTimeout: 0, bodyTimeout: 0 };
      if (proxyUrl !== undefined) {
        const settings = { ...options, uri: proxyUrl, requestTls: tls, proxyTls: {}, allowH2: false };
        return new ProxyAgent(settings);
      }
      return new Pool(origin, { ...options, allowH2: false, connect: { ...tls, keepAlive: true } });
    };
    this.#requests = dispatcher(connections);
    this.#streams = dispatcher(null);
  }

  /** @throws KubernetesError only where no whole answer came; what the answer says is the caller's. */
  async send(call: Call, timeout: number, signal: AbortSignal): Promise<Answer> {
    return this.#bounded(timeout, signal, (bound) => {
      const body = new Gathered();
      return new Promise<Answer>((resolve, reject) => {
        let status = 0;
        let headers: Answer['headers'] = {};
        const exchange = this.#exchange(this.#requests, call, largest.success, {
          start: (...head) => ([status, headers] = head),
          data: (chunk) => {
            body.add(chunk);
          },
          end: () => {
            resolve({ status, headers, body: body.take().toString('utf8') });
          },
          lost: reject,
        });
        bound(exchange);
      });
    });
  }

  /**
   * Resolves with the head of the answer, which must come within `timeout`; the rest may take for ever.
   * @param silence longest time without a byte, ms; default: any.
   */
  async open(call: Call, timeout: number, signal: AbortSignal, silence = Infinity): Promise<Opened> {
    const body = new Body(this.#clock, silence);
    const answer = await this.#bounded(timeout, signal, (bound) => {
      return new Promise<Answer>((resolve, reject) => {
        const refusal = new Gathered();
        let head: Omit<Answer, 'body'> | undefined;
        const exchange = this.#exchange(this.#streams, call, Infinity, {
          start: (status, headers) => {
            if (status >= 200 && status < 300) resolve({ status, headers, body: '' });
            else head = { status, headers };
          },
          data: (chunk) => {
            if (head === undefined) body.put(chunk);
            else refusal.add(chunk);
          },
          end: () => {
            if (head !== undefined) resolve({ ...head, body: refusal.take().toString('utf8') });
            body.close();
          },
          lost: (error) => {
            reject(error);
            body.close(error);
          },
        });
        body.exchange = exchange;
        bound(exchange);
      });
    });
    return { ...answer, chunks: body.read(signal) };
  }

  /** No new requests; those under way end by themselves. */
  async close(): Promise<void> {
    await Promise.all([this.#requests.close(), this.#streams.close()]);
  }

  /** Ends everything at once. */
  async destroy(): Promise<void> {
    await Promise.all([this.#requests.destroy(), this.#streams.destroy()]);
  }

  async #bounded<T>(
    timeout: number,
    signal: AbortSignal,
    run: (bound: (exchange: Exchange) => void) => Promise<T>,
  ): Promise<T> {
    let exchange: Exchange | undefined;
    const abort = () => exchange?.end(givenUp);
    signal.addEventListener('abort', abort);
    const deadline = this.#deadlines.open(timeout, () => {
      exchange?.end((asked, sent) => tooLate(asked, timeout, sent));
    });
    try {
      const answered = run((begun) => (exchange = begun));
      if (signal.aborted) abort();
      return await answered;
    } finally {
      this.#deadlines.close(deadline);
      signal.removeEventListener('abort', abort);
    }
  }

  /** @param most bytes of an answer that is no refusal */
  #exchange(dispatcher: Dispatcher, call: Call, most: number, sink: Sink): Exchange {
    const asked = { server: this.#origin, method: call.method, path: call.path.split('?', 1)[0] ?? '' };
    let controller: Dispatcher.DispatchController | undefined;
    let sent = false;
    let over = false;
    let [bytes, bound] = [0, most];
    const lose = (why: Ending) => {
      if (over) return;
      over = true;
      sink.lost(why(asked, sent));
    };
    const { method, path, headers, body } = call;
    dispatcher.dispatch(
      // `reset`: undici gives up a connection after a DELETE with a body, and a new one costs more than the request.
      { origin: this.#origin, method, path, headers, body: body ?? null, reset: false },
      {
        onRequestStart: (given) => {
          controller = given;
          // Ended while it waited for a connection: it never goes out.
          if (over) given.abort(new Error('given up'));
          else sent = true;
        },
        onResponseStart: (_, status, answered) => {
          // 100 to 199 announce the answer.
          if (over || status < 200) return;
          if (status >= 300) bound = largest.refusal;
          sink.start(status, answered);
        },
        onResponseData: (_, chunk) => {
          if (over) return;
          bytes += chunk.length;
          if (bytes <= bound) {
            sink.data(chunk);
            return;
          }
          lose((of, wasSent) => tooLarge(of, `${bound} bytes`, wasSent));
          controller?.abort(new Error('too large'));
        },
        onResponseEnd: () => {
          if (over) return;
          over = true;
          sink.end();
        },
        onResponseError: (_, error) => {
          lose((of, wasSent) => noAnswer(of, error, wasSent));
        },
      },
    );
    return {
      end: (why) => {
        lose(why);
        controller?.abort(new Error('given up'));
      },
      pause: () => controller?.pause(),
      resume: () => controller?.resume(),
    };
  }
}

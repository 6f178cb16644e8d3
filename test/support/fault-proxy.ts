import { readFileSync } from 'node:fs';
import {
  Agent as HttpAgent,
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import {
  Agent as HttpsAgent,
  createServer as createSecureServer,
  request as httpsRequest,
  type RequestOptions,
} from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from './kubernetes.ts';
import { type KubeRequest, readKubeRequest } from './kube-request.ts';

/** What goes wrong with a request. */
export type Fault =
  /** Passed on this late, ms. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Passed on when `until` resolves, also when whoever asked has long gone: a request that is carried out late. */
  | { readonly kind: 'late'; readonly until: Promise<unknown> }
  /** Answered by the proxy: 403, 410, 429, 500, 503 ... with a Status as an API server writes it. `retryAfter`: s. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly retryAfter?: number;
      readonly message?: string;
    }
  /** The connection is cut, and the server never saw the request. The test acts first. */
  | { readonly kind: 'cut-before'; readonly first?: () => void }
  /** The server has done what was asked, and its answer is lost with the connection. The test acts in between. */
  | { readonly kind: 'cut-after'; readonly first?: () => void }
  /** The server has done what was asked, and half of its answer comes as if it were the whole. */
  | { readonly kind: 'half' }
  /** The proxy answers this text instead of the server, which never saw the request. */
  | { readonly kind: 'text'; readonly status: number; readonly text: string }
  /** The connection is cut after `lines` whole lines of the answer, in the middle of the next: a watch's event. */
  | { readonly kind: 'cut-line'; readonly lines?: number }
  /** After `lines` whole lines nothing comes any more, and the connection stays open. Without any: not even a header. */
  | { readonly kind: 'stall'; readonly lines?: number }
  /** After `lines` whole lines an ERROR event of this code (410: the resource version is too old), then the end. */
  | {
      readonly kind: 'error-event';
      readonly code: number;
      readonly lines?: number;
      readonly message?: string;
    };

export interface Rule {
  /** Whose requests; each condition left out matches all. */
  readonly verb?: KubeRequest['verb'];
  /** `jobs`, `pods/log`. */
  readonly resource?: string;
  readonly namespace?: string;
  readonly name?: string | RegExp;
  /** Or a condition of any other kind. */
  readonly when?: (request: KubeRequest) => boolean;
  /** How many matching requests pass before the fault begins, default 0. */
  readonly skip?: number;
  /** How many requests it hits, default all. */
  readonly times?: number;
  readonly fault: Fault;
}

export interface SeenRequest extends KubeRequest {
  /** When it came, monotonic ms. */
  readonly at: number;
  /** What went wrong with it, if something did. */
  readonly fault?: Fault['kind'];
  /** The server's answer; undefined: it has not answered, or never was asked. */
  status?: number;
  /** When it was over, or was given up, monotonic ms; undefined: it is open. */
  endedAt?: number;
}

/** A rule at work. */
export interface Injected {
  /** Requests it has hit so far. */
  readonly hits: number;
  /** Ends the fault for the requests to come. */
  remove(): void;
}

interface Active {
  readonly rule: Rule;
  matched: number;
  hits: number;
}

export interface Upstream {
  /** http:// or https:// with a port. */
  readonly url: string;
  readonly ca?: Buffer;
  /** Who the proxy is towards the server, where a request says nothing itself (Authorization). */
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

const statusObject = (code: number, message: string) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  reason: reasons[code] ?? 'Unknown',
  code,
});

/** A reverse proxy in front of a real server that makes what a test cannot ask of the server: failures, by rules. */
export class FaultProxy implements AsyncDisposable {
  readonly url: string;
  /** Every request it was asked, in order. */
  readonly requests: SeenRequest[] = [];
  readonly #server: Server;
  readonly #upstream: Upstream;
  readonly #agents: { readonly asProxy: HttpAgent; readonly asClient: HttpAgent };
  readonly #rules: Active[] = [];
  readonly #sockets = new Set<Socket>();

  /** In front of a control plane; plain HTTP, or `tls` with the certificate of its API server. */
  static inFrontOf(plane: ControlPlane, options: { readonly tls?: boolean } = {}): Promise<FaultProxy> {
    const { server, certificates } = plane.status;
    const read = (name: string) => readFileSync(join(certificates, name));
    const tls = options.tls === true && { cert: read('apiserver.crt'), key: read('apiserver.key') };
    const upstream = { url: server, ca: read('ca.crt'), cert: read('admin.crt'), key: read('admin.key') };
    return FaultProxy.start(upstream, tls === false ? undefined : tls);
  }

  /** `tls`: certificate that it shows; without it plain HTTP. */
  static async start(
    upstream: Upstream,
    tls?: { readonly cert: Buffer; readonly key: Buffer },
  ): Promise<FaultProxy> {
    let proxy: FaultProxy | undefined = undefined;
    const listener: RequestListener = (request, response) => {
      // What breaks here is a connection: that of the test sees it.
      (proxy as unknown as FaultProxy).#serve(request, response).catch(() => {
        request.socket.destroy();
      });
    };
    const server: Server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    proxy = new FaultProxy(`${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`, server, upstream);
    return proxy;
  }

  private constructor(url: string, server: Server, upstream: Upstream) {
    this.url = url;
    this.#server = server;
    this.#upstream = upstream;
    const { ca, cert, key } = upstream;
    const trust = { keepAlive: true, ...(ca && { ca }) };
    const secure = upstream.url.startsWith('https:');
    this.#agents = {
      asProxy: secure
        ? new HttpsAgent({ ...trust, ...(cert && { cert }), ...(key && { key }) })
        : new HttpAgent({ keepAlive: true }),
      asClient: secure ? new HttpsAgent(trust) : new HttpAgent({ keepAlive: true }),
    };
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Of several rules for one request the first that is not used up counts. */
  inject(rule: Rule): Injected {
    for (const [name, value] of Object.entries({ skip: rule.skip, times: rule.times })) {
      if (value !== undefined && !(Number.isInteger(value) && value >= 0))
        throw new Error(`${name} of a rule is ${value}: it must be a whole number of requests`);
    }
    const active: Active = { rule, matched: 0, hits: 0 };
    const rules = this.#rules;
    rules.push(active);
    return {
      get hits() {
        return active.hits;
      },
      remove() {
        const at = rules.indexOf(active);
        if (at >= 0) rules.splice(at, 1);
      },
    };
  }

  /** All rules end; connections that stall go on doing so. */
  heal(): void {
    this.#rules.length = 0;
  }

  /** Requests so far, by what they ask. */
  count(of: Pick<Rule, 'verb' | 'resource' | 'namespace' | 'name' | 'when'> = {}): number {
    return this.requests.filter((request) => matches(of, request)).length;
  }

  /** Cuts every connection there is, as a restarted load balancer does. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    this.#agents.asClient.destroy();
    this.#agents.asProxy.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #faultFor(request: KubeRequest): Fault | undefined {
    for (const active of this.#rules) {
      const { rule } = active;
      if (!matches(rule, request)) continue;
      active.matched++;
      if (active.matched <= (rule.skip ?? 0) || active.hits >= (rule.times ?? Infinity)) continue;
      active.hits++;
      return rule.fault;
    }
    return undefined;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = readKubeRequest(request.method ?? 'GET', request.url ?? '/');
    const fault = this.#faultFor(asked);
    const seen: SeenRequest = { ...asked, at: performance.now(), ...(fault && { fault: fault.kind }) };
    this.requests.push(seen);
    response.once('close', () => {
      seen.endedAt = performance.now();
    });
    // Taken in first: the server is asked only for what the client has said to its end.
    const body = await readAll(request);
    switch (fault?.kind) {
      case 'status':
        answer(response, fault);
        return;
      case 'text':
        response.writeHead(fault.status, { 'content-type': 'text/plain' }).end(fault.text);
        return;
      case 'cut-before':
        fault.first?.();
        request.socket.destroy();
        return;
      case 'delay':
        await sleep(fault.ms);
        break;
      case 'late':
        await fault.until;
        break;
      case 'stall':
        if (fault.lines === undefined) return;
        break;
      case undefined:
      case 'cut-after':
      case 'half':
      case 'cut-line':
      case 'error-event':
        break;
    }
    if (request.socket.destroyed && fault?.kind !== 'late') return;
    const upstream = await this.#ask(request, response, body, fault?.kind === 'late');
    seen.status = upstream.statusCode ?? 0;
    if (fault?.kind === 'cut-after') {
      await readAll(upstream);
      fault.first?.();
      request.socket.destroy();
      return;
    }
    if (fault?.kind === 'half') {
      const whole = await readAll(upstream);
      response.writeHead(seen.status, { 'content-type': 'application/json' });
      response.end(whole.subarray(0, Math.ceil(whole.length / 2)));
      return;
    }
    const { 'content-length': length, ...headers } = upstream.headers;
    const whole = fault === undefined || fault.kind === 'delay' || fault.kind === 'late';
    response.writeHead(upstream.statusCode ?? 502, whole && length ? upstream.headers : headers);
    response.flushHeaders();
    if (whole) await passOn(upstream, response);
    else await passLines(upstream, response, fault);
  }

  #ask(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
    late: boolean,
  ): Promise<IncomingMessage> {
    const { method, url = '/', headers } = request;
    // Said anew by this connection; and lines can be counted only in text that is not compressed.
    const own = ['host', 'connection', 'content-length', 'transfer-encoding', 'accept-encoding'];
    const others = Object.fromEntries(Object.entries(headers).filter(([name]) => !own.includes(name)));
    const target = new URL(url, this.#upstream.url);
    const agent = headers.authorization === undefined ? this.#agents.asProxy : this.#agents.asClient;
    const send: (
      url: URL,
      options: RequestOptions,
      answered: (answer: IncomingMessage) => void,
    ) => ReturnType<typeof httpRequest> = target.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const length = body.length > 0 ? { 'content-length': String(body.length) } : {};
      const sent = send(target, { method, agent, headers: { ...others, ...length } }, resolve);
      sent.on('error', reject);
      // A client that goes takes its watch along; what is carried out late it cannot call back.
      if (!late) response.once('close', () => sent.destroy());
      sent.end(body);
    });
  }
}

function matches(
  { verb, resource, namespace, name, when }: Omit<Rule, 'fault'>,
  request: KubeRequest,
): boolean {
  if (verb !== undefined && verb !== request.verb) return false;
  if (resource !== undefined && resource !== request.resource) return false;
  if (namespace !== undefined && namespace !== request.namespace) return false;
  if (typeof name === 'string' && name !== request.name) return false;
  if (name instanceof RegExp && !name.test(request.name)) return false;
  return when?.(request) ?? true;
}

function answer(response: ServerResponse, fault: Fault & { kind: 'status' }): void {
  const { status, retryAfter, message = `injected ${status}` } = fault;
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
  });
  response.end(JSON.stringify(statusObject(status, message)));
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

async function passOn(upstream: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    for await (const piece of upstream) response.write(piece);
  } catch {
    // The server cut it: so does the proxy.
    response.destroy();
    return;
  }
  response.end();
}

/** Passes on whole lines up to the fault's, then does what it says. An answer without that many lines ends as it is. */
async function passLines(
  upstream: IncomingMessage,
  response: ServerResponse,
  fault: Fault & { kind: 'cut-line' | 'stall' | 'error-event' },
): Promise<void> {
  const { lines = 0 } = fault;
  let passed = 0;
  let pending = Buffer.alloc(0);
  if (fault.kind !== 'cut-line' && lines === 0) {
    finish(upstream, response, fault);
    return;
  }
  // A stalled one is read on: the server sees a client that listens.
  for await (const piece of upstream.iterator({ destroyOnReturn: false })) {
    pending = Buffer.concat([pending, piece as Buffer]);
    for (;;) {
      const end = pending.indexOf(0x0a);
      if (passed === lines) {
        // Some of the next line is there: half of it is what the client gets.
        if (pending.length < 2) break;
        const half = pending.subarray(0, Math.ceil((end < 0 ? pending.length : end) / 2));
        response.write(half, () => {
          finish(upstream, response, fault);
        });
        return;
      }
      if (end < 0) break;
      response.write(pending.subarray(0, end + 1));
      pending = pending.subarray(end + 1);
      passed++;
      if (passed === lines && fault.kind !== 'cut-line') {
        finish(upstream, response, fault);
        return;
      }
    }
  }
  response.end(pending);
}

function finish(
  upstream: IncomingMessage,
  response: ServerResponse,
  fault: Fault & { kind: 'cut-line' | 'stall' | 'error-event' },
): void {
  switch (fault.kind) {
    case 'cut-line':
      upstream.destroy();
      response.destroy();
      return;
    case 'stall':
      upstream.resume();
      return;
    case 'error-event': {
      upstream.destroy();
      const { code, message = code === 410 ? 'too old resource version' : `injected ${code}` } = fault;
      response.end(`${JSON.stringify({ type: 'ERROR', object: statusObject(code, message) })}\n`);
      return;
    }
  }
}

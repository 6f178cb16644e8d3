import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  /** With its query. */
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** From 1, one per connection. */
  readonly connection: number;
}

export type Respond = (response: ServerResponse, request: SeenRequest) => void;

/** A server that does to each request what a test tells it, in the order the requests come. */
export interface ScriptedServer {
  readonly url: string;
  readonly requests: SeenRequest[];
  /** Open connections. */
  readonly connections: number;
  /** What becomes of the next requests; without a script every one is left without an answer. */
  next(...responds: Respond[]): void;
  /** What becomes of all requests that no script is left for. */
  always(respond: Respond): void;
  stop(): Promise<void>;
}

export async function startScriptedServer(tls?: ServerOptions): Promise<ScriptedServer> {
  const requests: SeenRequest[] = [];
  const script: Respond[] = [];
  const sockets = new Set<Socket>();
  const numbers = new WeakMap<Socket, number>();
  let count = 0;
  let otherwise: Respond = () => undefined;
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { method = '', url = '', headers, socket } = request;
      const body = Buffer.concat(pieces).toString('utf8');
      const seen = { method, url, headers, body, connection: numbers.get(socket) ?? 0 };
      requests.push(seen);
      (script.shift() ?? otherwise)(response, seen);
    });
  };
  const server = tls === undefined ? createHttp(answer) : createHttps(tls, answer);
  server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    numbers.set(socket, ++count);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  // A test may take longer between two of its requests, on a busy machine.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    requests,
    get connections() {
      return sockets.size;
    },
    next: (...responds) => {
      script.push(...responds);
    },
    always: (respond) => {
      otherwise = respond;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers with JSON. */
export function json(status: number, value: unknown, headers: Record<string, string> = {}): Respond {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(value));
  };
}

/** Answers with a Status, as the API does when it says no. */
export function status(
  code: number,
  reason: string,
  message: string,
  details: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Respond {
  const value = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details };
  return json(code, value, headers);
}

/** Answers with these lines, and then as `then` says; without it the connection stays open. */
export function lines(values: readonly unknown[], then?: (response: ServerResponse) => void): Respond {
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    for (const value of values) {
      response.write(typeof value === 'string' ? value : `${JSON.stringify(value)}\n`);
    }
    if (then)
      setImmediate(() => {
        then(response);
      });
  };
}

/** Cuts the connection off in the middle. */
export const cut = (response: ServerResponse): void => {
  response.destroy();
};

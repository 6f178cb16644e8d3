import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Bounds the connections of a server. One too many costs that which has waited longest without a complete request, and where none has, that
 * of the oldest request of which the rest is still to come, or whose answer the client does not take: so clients that hold connections open keep
 * out no client that asks.
 */
export function boundConnections(server: Server, atMost: number): void {
  const open = new Set<Socket>();
  // In the order in which they began to wait.
  const waiting = new Set<Socket>();
  // In the order of their requests.
  const answering = new Map<Socket, Exchange>();
  const stalled = () => answering.entries().find(([, exchange]) => waitsForClient(exchange));
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    waiting.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      waiting.delete(socket);
      answering.delete(socket);
    });
    if (open.size <= atMost) return;
    const [first = socket] = waiting;
    // The new one has waited least.
    const longest = first === socket ? (stalled()?.[0] ?? socket) : first;
    // Until its end is heard of, another one is chosen.
    waiting.delete(longest);
    answering.delete(longest);
    open.delete(longest);
    longest.destroy();
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    waiting.delete(socket);
    answering.set(socket, { request, response });
    response.once('close', () => {
      if (answering.get(socket)?.response === response) answering.delete(socket);
      if (open.has(socket)) waiting.add(socket);
    });
  });
}

/**
 * Ends each connection behind its first requests, once they are answered: those that a client sends behind them get no answer.
 * @param most `maxRequestsPerSocket` of the server
 */
export function endAfter(server: Server, most: number): void {
  const asked = new WeakMap<Socket, number>();
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const count = (asked.get(socket) ?? 0) + 1;
    asked.set(socket, count);
    if (count === most)
      response.once('finish', () => {
        socket.destroySoon();
      });
  });
  server.on('dropRequest', (_request, socket) => {
    // Nothing more of it is read.
    socket.pause();
  });
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const waitsForClient = ({ request, response }: Exchange) =>
  !request.complete || response.writableEnded || response.writableNeedDrain;

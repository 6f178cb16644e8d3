import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Bounds the connections of a server. One too many costs that which has waited longest without a complete request, so that
 * clients that hold connections open keep out no client that asks.
 */
export function boundConnections(server: Server, atMost: number): void {
  const open = new Set<Socket>();
  // In the order in which they began to wait.
  const waiting = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    waiting.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      waiting.delete(socket);
    });
    if (open.size <= atMost) return;
    const [longest = socket] = waiting;
    // Until its end is heard of, another one is chosen.
    waiting.delete(longest);
    open.delete(longest);
    longest.destroy();
  });
  server.on('request', ({ socket }: { readonly socket: Socket }, response: ServerResponse) => {
    waiting.delete(socket);
    response.once('close', () => {
      if (open.has(socket)) waiting.add(socket);
    });
  });
}

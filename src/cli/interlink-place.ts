import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { isLoopback } from '../http/access.ts';
import { hasCode } from '../util/files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';

export interface ListeningOptions {
  readonly host?: unknown;
  readonly port: unknown;
  readonly socket?: unknown;
  readonly othersMayReachIt?: unknown;
}

/**
 * Has a start end that could listen nowhere, or for everyone. The source itself would try again and again.
 * @throws ThresherError `interlink-listen`, `interlink-open`
 */
export async function requireFree(options: ListeningOptions): Promise<void> {
  const { host = '127.0.0.1', port, socket, othersMayReachIt } = options;
  if (typeof socket === 'string') {
    await requireNoListener(socket);
    return;
  }
  const address = String(host);
  if (othersMayReachIt !== true && !isLoopback(address)) {
    const message =
      `${address} is an address that other machines may reach, and interLink sends a plugin no token: each of them could run jobs. ` +
      'Listen on 127.0.0.1 or at a unix socket (--socket), or allow it with --others-may-reach-it';
    throw new ThresherError('interlink-open', message, { host: address });
  }
  await requireBindable({ host: address, port: Number(port) });
}

async function requireBindable(place: { readonly host: string; readonly port: number }): Promise<void> {
  const server = createServer();
  try {
    server.listen({ ...place });
    await once(server, 'listening');
  } catch (error) {
    const { host, port } = place;
    const why = hasCode(error, 'EADDRINUSE') ? 'another program listens there' : messageOf(error);
    const message = `thresher cannot listen on ${host}:${port}: ${why}; choose another with --port or SidecarPort`;
    throw new ThresherError('interlink-listen', message, { host, port }, { cause: error });
  }
  server.close();
  await once(server, 'close');
}

/** A socket that a killed daemon left is no trouble. */
async function requireNoListener(path: string): Promise<void> {
  const probe = connect({ path });
  try {
    await once(probe, 'connect');
  } catch {
    return;
  } finally {
    probe.destroy();
  }
  const message = `another program listens at the socket ${path}; choose another with --socket or Socket`;
  throw new ThresherError('interlink-listen', message, { socket: path });
}

import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { ensureDirectory, hasCode } from '../../../util/files.ts';
import { isLoopbackAddress } from '../../../util/loopback.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';

/** Where the sidecar listens. */
export type Place =
  | { readonly socket: string }
  | { readonly host: string; readonly port: number; readonly othersMayReachIt: boolean };

/** Listens until `signal` aborts. @throws ThresherError `interlink-listen`, `interlink-open` */
export async function listenAt(app: FastifyInstance, place: Place): Promise<string> {
  return 'socket' in place ? listenAtSocket(app, place.socket) : listenAtPort(app, place);
}

/** Whether only this machine can reach the address. A name is looked up when it is bound. */
export function isLoopback(address: string): boolean {
  const plain = address.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:/i, '');
  return isLoopbackAddress(plain);
}

/** @throws ThresherError `interlink-open`: before anything listens */
export function requireConsent({
  host,
  othersMayReachIt,
}: {
  host: string;
  othersMayReachIt: boolean;
}): void {
  if (othersMayReachIt || isLoopback(host) || host === 'localhost') return;
  const message =
    `${host} is an address that other machines may reach, and interLink sends a plugin no token: each of them could run jobs. ` +
    'Listen on 127.0.0.1 or on a unix socket, or allow it with othersMayReachIt';
  throw new ThresherError('interlink-open', message, { host });
}

async function listenAtPort(
  app: FastifyInstance,
  place: Extract<Place, { readonly host: string }>,
): Promise<string> {
  requireConsent(place);
  const { host, port } = place;
  try {
    await app.listen({ host, port });
  } catch (error) {
    const message = hasCode(error, 'EADDRINUSE')
      ? `${host}:${port} is in use by another program`
      : `thresher cannot listen on ${host}:${port}: ${messageOf(error)}`;
    throw new ThresherError('interlink-listen', message, { host, port }, { cause: error });
  }
  const addresses = app.addresses().filter((address) => typeof address === 'object');
  // A file defines the addresses of "localhost".
  const open = addresses.find(({ address }) => !isLoopback(address));
  if (open !== undefined && !place.othersMayReachIt) {
    await app.close();
    requireConsent({ host: open.address, othersMayReachIt: false });
  }
  return `http://${host.includes(':') ? `[${host}]` : host}:${addresses[0]?.port ?? port}`;
}

async function listenAtSocket(app: FastifyInstance, socket: string): Promise<string> {
  try {
    await makePrivate(dirname(socket));
    await removeStale(socket);
    await app.listen({ path: socket });
    await chmod(socket, 0o600);
  } catch (error) {
    if (error instanceof ThresherError) throw error;
    const message = `thresher cannot listen at the socket ${socket}: ${messageOf(error)}`;
    throw new ThresherError('interlink-listen', message, { socket }, { cause: error });
  }
  return `unix://${socket}`;
}

/** A directory that is there keeps its mode: the operator may let the user of interLink into it. */
async function makePrivate(directory: string): Promise<void> {
  await ensureDirectory(dirname(directory));
  await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error;
  });
}

/** A daemon that was killed leaves its socket. One that answers belongs to another daemon. */
async function removeStale(socket: string): Promise<void> {
  const found = await lstat(socket).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (found === undefined) return;
  if (!found.isSocket())
    throw new ThresherError('interlink-listen', `${socket} is there and is no socket`, { socket });
  if (await answers(socket))
    throw new ThresherError('interlink-listen', `another program listens at the socket ${socket}`, {
      socket,
    });
  await rm(socket, { force: true });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path });
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => {
      resolve(false);
    });
  });
}

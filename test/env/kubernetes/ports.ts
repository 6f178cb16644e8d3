import { createServer } from 'node:net';
import { Failure } from '../failure.ts';

/**
 * Ports for servers of tests, below those that the kernel gives to outgoing connections (32768 and up): one of these would be taken
 * between the look and the start of the server, and between its end and its next start. Each process of mocha has a slot of its own.
 */
const first = 20_000;
const perSlot = 500;
/** Slots of mocha's processes; the last one is for all other programs. */
const slots = 8;

const { MOCHA_WORKER_ID: worker } = process.env;
const slot = worker === undefined ? slots - 1 : Number(worker) % (slots - 1);
// Two runs on a machine begin at different ports.
let next = process.pid % perSlot;

/** The usual port on loopback, or another one that is free and that this process has not named lately. */
export async function freePort(usual?: number): Promise<number> {
  if (usual !== undefined && (await isFree(usual))) return usual;
  for (let tried = 0; tried < perSlot; tried++) {
    const port = first + slot * perSlot + next;
    next = (next + 1) % perSlot;
    if (await isFree(port)) return port;
  }
  throw new Failure(`no port of ${perSlot} from ${first + slot * perSlot} on is free on 127.0.0.1`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const free = await new Promise<boolean>((resolve) => {
    server.once('error', () => {
      resolve(false);
    });
    server.listen(port, '127.0.0.1', () => {
      resolve(true);
    });
  });
  await new Promise((resolve) => server.close(resolve));
  return free;
}

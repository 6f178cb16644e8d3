import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { withoutOwn } from '../util/own-secrets.ts';

/**
 * Ends the process without waiting for its threads. `process.exit` joins them, and one that hangs in a named pipe or on a dead mount
 * keeps the process for ever: another program takes its place instead, since only that ends all threads with a status of our choice.
 */
export function endWithoutWaiting(status: number): void {
  try {
    process.execve?.('/bin/sh', ['sh', '-c', `exit ${status}`], {});
  } catch {
    // The kill below ends it then, with a status that says less.
  }
  process.kill(process.pid, 'SIGKILL');
}

/** From here on, no hanging thread keeps the process of a daemon, however it ends. */
export function neverWaitForThreads(): void {
  // Node says why it ends only after its last listener, which does not come back here.
  process.once('uncaughtException', (error) => {
    process.stderr.write(`thresher: a defect ends the daemon: ${withoutOwn(inspect(error))}\n`);
    process.exit(1);
  });
  process.once('exit', endWithoutWaiting);
}

const byForce = 'thresher: the stop did not come to its end; ending by force\n';
/** How much later a process is killed that does not end itself by force, ms. */
const killAfter = 1000;

/** Waits in a thread until a moment of the clock that all threads share, ns. */
const waitUntil = `
const waitUntil = (moment) => {
  const ms = Number(moment - process.hrtime.bigint()) / 1e6;
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};`;

/** The message has a thread of its own, since a full pipe may keep it for ever. */
const messenger = `${waitUntil}
const { message, moment } = require('node:worker_threads').workerData;
waitUntil(moment);
require('node:fs').writeSync(2, message);
`;

/**
 * The killer has a thread of its own: it also ends a process whose main thread hangs, in a plugin or on a disk. It starts its
 * messenger at once: on a busy machine a thread may take longer to start than the message has.
 */
const killer = `${waitUntil}
const { Worker, workerData: { after, message, messenger } } = require('node:worker_threads');
const moment = process.hrtime.bigint() + BigInt(Math.round(after)) * 1_000_000n;
new Worker(messenger, { eval: true, workerData: { message, moment } });
waitUntil(moment + 500_000_000n);
process.kill(process.pid, 'SIGKILL');
`;

/** Ends the process by force after this time, ms: with status 1, or by SIGKILL where its main thread hangs. */
export function endByForceAfter(ms: number): void {
  setTimeout(() => {
    process.stderr.write(byForce);
    process.exit(1);
  }, ms).unref();
  const workerData = { after: ms + killAfter, message: byForce, messenger };
  new Worker(killer, { eval: true, workerData }).unref();
}

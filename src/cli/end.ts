import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';

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
    process.stderr.write(`thresher: a defect ends the daemon: ${inspect(error)}\n`);
    process.exit(1);
  });
  process.once('exit', endWithoutWaiting);
}

const byForce = 'thresher: the stop did not come to its end; ending by force\n';
/** How much later a process is killed that does not end itself by force, ms. */
const killAfter = 1000;

/**
 * The killer has a thread of its own: it also ends a process whose main thread hangs, in a plugin or on a disk. Its message has a
 * third one, since a full pipe may keep the message for ever.
 */
const killer = `
const { Worker, workerData } = require('node:worker_threads');
const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const say = "require('node:fs').writeSync(2, require('node:worker_threads').workerData)";
wait(workerData.after);
new Worker(say, { eval: true, workerData: workerData.message });
wait(500);
process.kill(process.pid, 'SIGKILL');
`;

/** Ends the process by force after this time, ms: with status 1, or by SIGKILL where its main thread hangs. */
export function endByForceAfter(ms: number): void {
  setTimeout(() => {
    process.stderr.write(byForce);
    process.exit(1);
  }, ms).unref();
  new Worker(killer, { eval: true, workerData: { after: ms + killAfter, message: byForce } }).unref();
}

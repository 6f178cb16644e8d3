import { once } from 'node:events';
import { daemonOn } from '../daemon/reader.ts';
import { logReaderOf } from '../daemon/log-reader.ts';
import { readRequestReasons } from '../daemon/requests/request-file.ts';
import { isComplete, livingOf, whyRequestWaits } from '../daemon/requests/request-view.ts';
import type { StateDir } from '../daemon/state-dir.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import type { RequestRecord } from '../store/requests.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import { mostWorkers } from '../worker/operator-request.ts';
import { isFinal } from '../worker/status.ts';
import { type Environment, noLog } from './environment.ts';
import { oneLine } from './output.ts';
import { weightiest } from './queues.ts';

/** How often the database is asked, ms. */
const interval = 200;

/** Exit status where a worker has none: it was cancelled, missed, or lost. */
export const noExitStatus = 125;

export interface Opened {
  readonly store: Store;
  readonly dir: StateDir;
  readonly factoryId: string;
  readonly settings: LoadedSettings;
}

/** The worst exit status of these workers; `noExitStatus` where one of so many has none. */
export function exitStatusOf(
  workers: readonly Pick<WorkerRecord, 'status' | 'exitCode'>[],
  count: number,
): number {
  const statuses = workers.map(({ status, exitCode }) => {
    if (status === 'finished') return exitCode ?? 0;
    // A failed worker was no success, whatever its program said.
    const isKnown = status === 'failed' && exitCode !== null && exitCode > 0 && exitCode < 256;
    return isKnown ? exitCode : noExitStatus;
  });
  return Math.max(0, ...statuses, workers.length < count ? noExitStatus : 0);
}

/**
 * Waits until no worker of this request lives and none is still to come, and says why it waits.
 * @returns its workers; undefined where `signal` aborted
 */
export async function untilEnded(
  id: string,
  opened: Opened,
  environment: Environment,
  signal: AbortSignal,
): Promise<readonly WorkerRecord[] | undefined> {
  const { store } = opened;
  const tell = teller(opened, environment);
  while (!signal.aborted) {
    const request = await found(store, id);
    if (isOver(request)) return store.requests.workersOf(id, mostWorkers);
    await tell(request);
    await environment.clock.sleep(interval, signal);
  }
  return undefined;
}

/** Shows the standard output of each worker as it grows, one worker after the other. */
export async function followRequest(
  id: string,
  opened: Opened,
  environment: Environment,
  signal: AbortSignal,
): Promise<void> {
  const { store, settings, factoryId } = opened;
  const { clock, random, out, err } = environment;
  const files = new OperatorFiles({ clock });
  const shown = new Set<number>();
  const tell = teller(opened, environment);
  while (!signal.aborted) {
    const request = await found(store, id);
    const workers = await store.requests.workersOf(id, mostWorkers);
    const next = workers.find(
      ({ workerId, status }) => !shown.has(workerId) && (status === 'running' || isFinal(status)),
    );
    if (next === undefined) {
      if (isOver(request)) return;
      await tell(request);
      await clock.sleep(interval, signal);
      continue;
    }
    shown.add(next.workerId);
    try {
      const reader = await logReaderOf(next, store, {
        factoryId,
        settings,
        clock,
        files,
        random,
        log: noLog,
      });
      for await (const piece of reader.read(next, { stream: 'stdout', follow: true }, signal))
        if (!out.write(piece)) await once(out, 'drain');
    } catch (error) {
      // Reading ends with an error, too, where it is stopped.
      if (isAborted(signal)) return;
      err.write(`thresher: worker ${next.workerId}: ${oneLine(messageOf(error))}\n`);
    }
  }
}

async function found(store: Store, id: string): Promise<RequestRecord> {
  const request = await store.requests.byId(id);
  if (request === undefined) throw new ThresherError('no-such-request', `there is no request ${id}`);
  return request;
}

function isOver(request: RequestRecord): boolean {
  return (isComplete(request) || request.withdrawnTime !== null) && livingOf(request) === 0;
}

/** Says why a request lacks workers, whenever that changes. */
function teller({ store, dir }: Opened, { err }: Environment): (request: RequestRecord) => Promise<void> {
  let told = '';
  return async (request) => {
    const why = isComplete(request) ? '' : await whyWaiting(request, store, dir);
    if (why !== told && why !== '') err.write(`thresher: waiting: ${oneLine(why)}\n`);
    told = why;
  };
}

async function whyWaiting(request: RequestRecord, store: Store, dir: StateDir): Promise<string> {
  if ((await daemonOn(store, dir)) === undefined)
    return 'no daemon is running: this will be done when it starts';
  const queue = (await store.queues.all()).find((report) => report.queue === request.queue);
  return weightiest(whyRequestWaits(request, queue, readRequestReasons(dir)(request)));
}

/** Asked anew: it changes during a pause. */
function isAborted({ aborted }: AbortSignal): boolean {
  return aborted;
}

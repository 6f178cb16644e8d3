import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { WorkerView } from '../../src/daemon/view.ts';
import { type RunningDaemon, Site } from './site.ts';
import { temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

/** Seconds: the shortest that there is. */
export const leaseDuration = 3;

/**
 * A site whose daemons stand in for each other, on one machine: each has settings and a state directory of its own, and all of them have one
 * database and one directory of local workers.
 */
export class StandingIn {
  readonly sites: readonly Site[];
  /** Has a file for each worker, with a line for each of its starts. */
  readonly #starts = temporaryDirectory();
  #wanted: number;
  #isOver = false;
  readonly #daemons: RunningDaemon[] = [];

  /** @param urls addresses of the database, one for each daemon */
  constructor(urls: readonly string[], wanted: number) {
    this.#wanted = wanted;
    this.sites = urls.map(
      (url) =>
        new Site({
          pilot: `echo start >>${this.#starts}/$HARVESTER_WORKER_ID; exec sleep 1000`,
          queues: {},
          settings: {
            master: { factoryId: 'standing-in', shutdownTimeout: 1 },
            database: { url, sslmode: 'disable', leaseDuration },
            http: { enabled: true, port: 0 },
          },
        }),
    );
    this.want(wanted);
  }

  /** Starts a daemon, and starts it again whenever it ends by itself with an error, as a service manager does. */
  serve(
    index: number,
    env: Record<string, string> = {},
  ): { readonly output: () => string; daemon: RunningDaemon } {
    const served = {
      daemon: this.start(index, env),
      output: () => outputs.map((one) => one.output()).join(''),
    };
    const outputs = [served.daemon];
    const again = (code: number | NodeJS.Signals) => {
      if (this.#isOver || code !== 1) return;
      served.daemon = this.start(index, env);
      outputs.push(served.daemon);
      served.daemon.ended.then(again, () => undefined);
    };
    served.daemon.ended.then(again, () => undefined);
    return served;
  }

  start(index: number, env: Record<string, string> = {}): RunningDaemon {
    const daemon = this.site(index).start([], env);
    this.#daemons.push(daemon);
    return daemon;
  }

  site(index = 0): Site {
    const site = this.sites[index];
    if (site === undefined) throw new Error(`there is no site ${index}`);
    return site;
  }

  /** Lets all daemons want so many workers, once they read their queues again. */
  want(wanted: number, ...daemons: readonly RunningDaemon[]): void {
    this.#wanted = wanted;
    for (const site of this.sites) site.writeQueues(this.#queues());
    for (const { pid } of daemons) process.kill(pid, 'SIGHUP');
  }

  /** How often each worker was started, by its own word. */
  starts(): ReadonlyMap<number, number> {
    const linesOf = (id: string) => readFileSync(join(this.#starts, id), 'utf8').split('\n').length - 1;
    return new Map(readdirSync(this.#starts).map((id) => [Number(id), linesOf(id)]));
  }

  /**
   * Waits until all wanted workers run and no intent is open, and looks whether each was started, and once. Workers of this site never end:
   * a forgotten one would be replaced, and one more started.
   * @param read the workers as the database has them
   * @returns their ids
   */
  async expectOneEach(
    read: () => Promise<readonly Pick<WorkerView, 'workerID' | 'status'>[]> = () => this.site().workers(),
  ): Promise<number[]> {
    let now = 'nothing is known of them';
    const ids = await until(
      () =>
        `${this.#wanted} workers run: ${now}; the last daemon wrote\n${this.#daemons.at(-1)?.output().slice(-3000) ?? ''}`,
      async () => {
        const workers = await read();
        now = workers.map(({ workerID, status }) => `${workerID} ${status}`).join(', ');
        const running = workers.filter(({ status }) => status === 'running');
        const settled = workers.every(({ status }) => status !== 'pending');
        return running.length === this.#wanted && settled && running.map(({ workerID }) => workerID).sort();
      },
    );
    await until(
      () => `each worker has started: ${JSON.stringify([...this.starts()])}, and ${now}`,
      () => ids.every((id) => this.starts().has(id)),
    );
    expect([...this.starts()].sort()).to.deep.equal(ids.map((id) => [id, 1]));
    return ids;
  }

  async clean(): Promise<void> {
    this.#isOver = true;
    for (const site of this.sites) await site.clean();
  }

  #queues(): Record<string, Record<string, unknown>> {
    const workDir = this.site().path('workers');
    const part = (kind: string, options: Record<string, unknown> = {}) => ({
      name: `Local${kind}`,
      module: 'thresher/local',
      workDir,
      ...options,
    });
    return {
      Q: {
        maxWorkers: this.#wanted,
        nQueueLimitWorker: this.#wanted,
        maxNewWorkersPerCycle: 3,
        submitter: part('Submitter', { templateFile: 'pilot.yaml' }),
        monitor: part('Monitor', { pollInterval: 0.1, killGrace: 1 }),
        sweeper: part('Sweeper', { killGrace: 1 }),
      },
    };
  }
}

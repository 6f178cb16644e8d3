import { expect } from 'chai';
import { FaultProxy } from './fault-proxy.ts';
import { controlPlane, type Namespace } from './kubernetes.ts';
import { History, livingPods, workersWithJobs } from './kubernetes-history.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from './kubernetes-site.ts';
import { newDatabase, sharedPostgresql } from './postgresql.ts';
import type { RunningDaemon, Site } from './site.ts';
import { until } from './until.ts';

const wanted = 3;
/** Seconds: the shortest that there is. */
export const leaseDuration = 3;

/** Two sites of one factory on one PostgreSQL database, whose workers are Jobs of one namespace. */
export class KubernetesPair implements AsyncDisposable {
  readonly sites: readonly [Site, Site];
  readonly #space: Namespace;
  readonly #history: History;
  readonly #proxy: FaultProxy;
  readonly #database: string;

  static async make(): Promise<KubernetesPair> {
    const plane = await controlPlane();
    const space = await plane.namespace('pair');
    // Without TLS: a clock that is wrong takes certificates for invalid.
    const proxy = await FaultProxy.inFrontOf(plane);
    const database = await newDatabase();
    const url = (await sharedPostgresql()).url(database);
    const make = () =>
      kubernetesSite(
        plane,
        {
          settings: {
            master: { factoryId: 'two', shutdownTimeout: 2 },
            database: { url, sslmode: 'disable', leaseDuration },
          },
          queues: { Q: kubernetesQueue(space, { queue: { maxWorkers: wanted, nQueueLimitWorker: wanted } }) },
        },
        { 'job.yaml': jobTemplate() },
        { server: proxy.url },
      );
    return new KubernetesPair([make(), make()], {
      space,
      history: await History.begin(space),
      proxy,
      database,
    });
  }

  private constructor(
    sites: readonly [Site, Site],
    parts: { space: Namespace; history: History; proxy: FaultProxy; database: string },
  ) {
    this.sites = sites;
    this.#space = parts.space;
    this.#history = parts.history;
    this.#proxy = parts.proxy;
    this.#database = parts.database;
  }

  async query<Row>(text: string): Promise<Row[]> {
    return (await sharedPostgresql()).query<Row>(text, this.#database);
  }

  /** Waits until all wanted workers run, and looks for more than one Job or Pod of a worker. @returns their ids */
  async expectAllRun(leader: Pick<RunningDaemon, 'output'>): Promise<number[]> {
    let now = '';
    const what = () =>
      `all wanted workers run and no intent is open: ${now}; the leader wrote\n${leader.output().slice(-3000)}`;
    const ids = await until(what, async () => {
      const workers = await this.sites[0].workers();
      now = workers
        .map(({ workerID, status, diagMessage }) => `${workerID} ${status} ${diagMessage ?? ''}`)
        .join(', ');
      const running = workers.filter(({ status }) => status === 'running');
      const settled = workers.every(({ status }) => status !== 'pending');
      return running.length === wanted && settled && running.map(({ workerID }) => workerID).sort();
    });
    expect(await workersWithJobs(this.#space)).to.deep.equal(ids);
    expect(await livingPods(this.#space)).to.equal(wanted);
    expect(await this.#history.twice()).to.deep.equal([]);
    return ids;
  }

  /** The server forgets what it was long ago: a long test lets the history be read meanwhile. */
  async remember(): Promise<void> {
    await this.#history.made();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const site of this.sites) await site.clean();
    await this.#proxy[Symbol.asyncDispose]();
    await this.#space[Symbol.asyncDispose]();
  }
}

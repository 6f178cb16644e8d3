import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import type { ControlPlane, Namespace } from './kubernetes.ts';
import { History, workersWithJobs } from './kubernetes-history.ts';
import { jobTemplate, kubernetesQueue } from './kubernetes-site.ts';
import { newDatabase, sharedPostgresql } from './postgresql.ts';
import { SilentProxy } from './postgresql-proxy.ts';
import { Site } from './site.ts';
import { temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

/** Four queues on Kubernetes that may be with any member, and three sites for members: `one`, `two` and `three`. */
export class MemberSites implements AsyncDisposable {
  /** Workers of each queue. */
  static readonly wanted = 2;
  static readonly queues = ['Q1', 'Q2', 'Q3', 'Q4'];
  readonly space: Namespace;
  readonly history: History;
  readonly database: string;
  /** Between the first site and the database. */
  readonly proxy: SilentProxy;
  readonly sites: readonly [Site, Site, Site];

  /** @param leaseDuration s */
  static async open(plane: ControlPlane, leaseDuration: number): Promise<MemberSites> {
    const server = await sharedPostgresql();
    const proxy = new SilentProxy(server.directory);
    await proxy.start();
    const database = await newDatabase();
    const space = await plane.namespace('shares');
    const history = await History.begin(space);
    // Each queue has a kubeconfig of its own, which is a cluster of its own: what shares a cluster stays together.
    const files = temporaryDirectory();
    writeFileSync(join(files, 'job.yaml'), stringify(jobTemplate()));
    const limits = { maxWorkers: MemberSites.wanted, nQueueLimitWorker: MemberSites.wanted };
    const queues = Object.fromEntries(
      MemberSites.queues.map((name) => {
        const kubeconfig = join(files, `kubeconfig-${name}`);
        plane.writeKubeconfig(kubeconfig);
        return [
          name,
          kubernetesQueue(space, { kubeconfig, template: join(files, 'job.yaml'), queue: limits }),
        ];
      }),
    );
    const make = (member: string, url: string) =>
      new Site({
        settings: {
          master: { factoryId: 'many', shutdownTimeout: 2 },
          database: { url, sslmode: 'disable', leaseDuration, shareQueues: true, member },
          http: { enabled: true, port: 0 },
        },
        queues,
      });
    const sites = [
      make('one', proxy.url(database)),
      make('two', server.url(database)),
      make('three', server.url(database)),
    ] as const;
    await sites[2].loadCommands();
    return new MemberSites({ space, history, database, proxy, sites });
  }

  private constructor(parts: Pick<MemberSites, 'space' | 'history' | 'database' | 'proxy' | 'sites'>) {
    this.space = parts.space;
    this.history = parts.history;
    this.database = parts.database;
    this.proxy = parts.proxy;
    this.sites = parts.sites;
  }

  /** Waits until all wanted workers run, and nothing is open. */
  async expectAllRun(site: Site = this.sites[0]): Promise<void> {
    await until('all wanted workers of all queues run, each by its Job, and no intent is open', async () => {
      const workers = await site.workers();
      const running = workers.filter(({ status }) => status === 'running');
      const settled = workers.every(({ status }) => status !== 'pending');
      const each = MemberSites.queues.every(
        (name) => running.filter(({ queueName }) => queueName === name).length === MemberSites.wanted,
      );
      const ids = running.map(({ workerID }) => workerID).sort();
      // One that was told to end counts as running until its end is seen.
      return each && settled && ids.join() === (await workersWithJobs(this.space)).join();
    });
    expect(await this.history.twice()).to.deep.equal([]);
  }

  /** Who has which queues, by the names of those whose lease holds. */
  async members(): Promise<Record<string, string[]>> {
    const server = await sharedPostgresql();
    const rows = await server.query<{ item: string; member: string }>(
      `SELECT item, member FROM shares JOIN leases ON shard = 'member ' || member
        WHERE item LIKE 'queue %' AND expires_at > clock_timestamp() ORDER BY item`,
      this.database,
    );
    const found: Record<string, string[]> = {};
    for (const { item, member } of rows) (found[member] ??= []).push(item.replace('queue ', ''));
    return found;
  }

  /** Waits until these members have so many queues each, and all others none. */
  untilHave(counts: Readonly<Record<string, number>>): Promise<Record<string, string[]>> {
    return until(`they have ${JSON.stringify(counts)}`, async () => {
      const now = await this.members();
      const isSo = Object.entries(counts).every(([name, count]) => now[name]?.length === count);
      return isSo && Object.keys(now).length === Object.keys(counts).length && now;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.proxy.heal();
    for (const site of this.sites) await site.clean();
    this.proxy.close();
    await this.space[Symbol.asyncDispose]();
  }
}

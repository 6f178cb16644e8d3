import { writeFileSync } from 'node:fs';
import { newPandaId, type PandaEnvironment, type PandaServer, sharedPanda } from './panda.ts';
import { PandaProxy } from './panda-proxy.ts';
import { countStarts, Site, type SiteOptions } from './site.ts';
import { until } from './until.ts';

export interface PandaSiteOptions {
  /** Options of each queue beside what every one has; `Q` alone by default. Their names at the server are `siteOf`. */
  readonly queues?: Readonly<Record<string, Record<string, unknown>>>;
  /** Instead of pilots that wait for `letEnd`. */
  readonly pilot?: string;
  /** Settings of the daemon, beside the server's. */
  readonly settings?: SiteOptions['settings'];
  /** Keys of `pandacon` that differ. */
  readonly pandacon?: Readonly<Record<string, unknown>>;
  /** Options of the link that differ. */
  readonly link?: Readonly<Record<string, unknown>>;
  /** Instead of the server that all tests share. */
  readonly at?: PandaEnvironment;
  /** Certificate towards the server, instead of the one with the production role. */
  readonly as?: PandaServer['user'];
  /** Id of the instance; one of its own by default. */
  readonly id?: string;
}

/** A worker in the server's table. */
export interface ServerWorker {
  readonly workerid: number;
  readonly status: string;
  readonly computingsite: string;
  readonly resourcetype: string | null;
  readonly batchid: string | null;
  readonly pilotstatus: string | null;
}

/** A site whose queues of `runMode: slave` get their workers from the real PanDA server, through a fault proxy. */
export class PandaSite {
  readonly site: Site;
  /** `harvester_id` */
  readonly id: string;
  readonly at: PandaEnvironment;
  readonly server: PandaServer;
  readonly proxy: PandaProxy;
  readonly #sites: ReadonlyMap<string, string>;

  static async start(options: PandaSiteOptions = {}): Promise<PandaSite> {
    const { at = sharedPanda, as } = options;
    const server = at.server();
    return new PandaSite(at, server, await PandaProxy.inFrontOf(server, as), options);
  }

  private constructor(
    at: PandaEnvironment,
    server: PandaServer,
    proxy: PandaProxy,
    options: PandaSiteOptions,
  ) {
    const { queues = { Q: {} }, pilot, settings = {}, pandacon = {}, link = {} } = options;
    this.at = at;
    this.server = server;
    this.proxy = proxy;
    this.id = options.id ?? newPandaId('pt');
    this.#sites = new Map(Object.keys(queues).map((queue) => [queue, newPandaId(queue)]));
    const named = Object.entries(queues).map(([queue, given]) => [this.siteOf(queue), slaveQueue(given)]);
    this.site = new Site({
      queues: Object.fromEntries(named) as SiteOptions['queues'],
      pilot: pilot ?? `${countStarts} while [ ! -e "$SITE_DIR/go" ]; do sleep 0.2; done`,
      settings: {
        ...settings,
        master: { harvester_id: this.id, ...settings['master'] },
        pandacon: { ...this.login(), ...pandacon },
        commandmanager: { sleepTime: 0.2, ...settings['commandmanager'] },
        ...(Object.keys(link).length > 0 && { sources: { ...settings['sources'], panda: link } }),
      },
    });
  }

  /** Keys of `pandacon` for this server, through the proxy. */
  login(): Readonly<Record<string, unknown>> {
    const { ca, production } = this.server;
    return {
      server_api_url_ssl: this.proxy.url,
      auth_type: 'x509',
      ca_cert: ca,
      cert_file: production.cert,
      key_file: production.key,
      timeout: 30,
    };
  }

  /** Writes the queue file anew, with these options of each queue. */
  writeQueues(queues: Readonly<Record<string, Record<string, unknown>>>): void {
    const named = Object.entries(queues).map(([queue, given]) => [this.siteOf(queue), slaveQueue(given)]);
    this.site.writeQueues(Object.fromEntries(named) as SiteOptions['queues']);
  }

  /** The name that a queue has at the server and in the queue file. */
  siteOf(queue = 'Q'): string {
    const site = this.#sites.get(queue);
    if (site === undefined) throw new Error(`no queue ${queue}`);
    return site;
  }

  /** The server's order of new workers by resource type. */
  order(wanted: Readonly<Record<string, number>>, queue = 'Q'): void {
    this.command(`SET_N_WORKERS_JOBTYPE:${this.siteOf(queue)}`, { managed: wanted });
  }

  /** A command as the server makes one. */
  command(name: string, params?: unknown): void {
    this.at.admin('command', this.id, name, params === undefined ? '' : JSON.stringify(params));
  }

  /** The server's table of our workers. */
  serverWorkers(): Promise<readonly ServerWorker[]> {
    return this.at.rows(
      `SELECT workerid, status, computingsite, resourcetype, batchid, pilotstatus FROM harvester_workers
       WHERE harvesterid = '${this.id}' ORDER BY workerid`,
    );
  }

  /** Statuses of commands by name, as the server has them. */
  commands(): Promise<readonly { readonly command: string; readonly status: string }[]> {
    return this.at.rows(
      `SELECT command, status FROM harvester_commands WHERE harvester_id = '${this.id}' ORDER BY command_id`,
    );
  }

  /** The last statistics of a queue, by status, over all types; undefined where none were reported. */
  async statistics(queue = 'Q'): Promise<Readonly<Record<string, number>> | undefined> {
    const rows = await this.at.rows<{ status: string; n: number }>(
      `SELECT status, sum(n_workers)::int AS n FROM harvester_worker_stats
       WHERE harvester_id = '${this.id}' AND computingsite = '${this.siteOf(queue)}' GROUP BY status`,
    );
    return rows.length === 0 ? undefined : Object.fromEntries(rows.map(({ status, n }) => [status, n]));
  }

  /** Lets all pilots end well. */
  letEnd(): void {
    writeFileSync(this.site.path('go'), '');
  }

  /** How many pilots were ever started, by their own marks. */
  starts(): number {
    return [...this.site.starts().values()].reduce((sum, times) => sum + times, 0);
  }

  /** Waits until the server has so many workers, all of this status. */
  async untilServerHas(count: number, status: string): Promise<readonly ServerWorker[]> {
    let rows: readonly ServerWorker[] = [];
    return until(
      () => `the server has ${count} workers that are ${status}, not ${JSON.stringify(rows)}`,
      async () => {
        rows = await this.serverWorkers();
        return rows.length === count && rows.every((row) => row.status === status) && rows;
      },
    );
  }

  async clean(): Promise<void> {
    await this.site.clean();
    await this.proxy[Symbol.asyncDispose]();
  }
}

function slaveQueue(given: Record<string, unknown>): Record<string, unknown> {
  return {
    runMode: 'slave',
    maxWorkers: 100,
    nQueueLimitWorker: 100,
    maxNewWorkersPerCycle: 100,
    // The server's types need gigabytes for each worker, which the pilots of tests do not use.
    submitter: {
      name: 'LocalSubmitter',
      module: 'thresher/local',
      templateFile: 'pilot.yaml',
      maxMemory: 1_000_000,
    },
    ...given,
  };
}

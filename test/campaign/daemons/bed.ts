import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { FaultProxy } from '../../support/fault-proxy.ts';
import { controlPlane, type ControlPlane, type Namespace } from '../../support/kubernetes.ts';
import { jobTemplate, kubernetesQueue } from '../../support/kubernetes-site.ts';
import { newDatabase, PostgresqlServer } from '../../support/postgresql.ts';
import { type RunningDaemon, Site } from '../../support/site.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import type { Acts } from './acts.ts';
import { Census } from './census.ts';
import type { Division } from './division.ts';
import { Link, type Machine } from './machine.ts';
import { Service } from './service.ts';

/** Seconds: the shortest that there is. */
export const leaseDuration = 3;

const settings = {
  master: { factoryId: 'campaign', shutdownTimeout: 2, pluginTimeout: 3 },
  submitter: { sleepTime: 0.2 },
  sweeper: { sleepTime: 0.3, keepFinished: 0, keepFailed: 0, keepCancelled: 0, keepMissed: 0 },
  monitor: { missingGrace: 1 },
};

export interface RowOfWorker {
  readonly id: number;
  readonly queue: string;
  readonly status: string;
  readonly created: number;
  readonly ended: number | null;
}

interface Parts {
  readonly division: Division;
  readonly server: PostgresqlServer;
  readonly database: string;
  readonly machines: readonly Machine[];
  readonly census: Census;
  readonly acts: Acts;
  readonly api: FaultProxy;
  readonly desk: Site;
}

/** Daemons on one database of their own, each with its own way there, and one namespace for all. */
export class Bed implements AsyncDisposable, Parts {
  readonly division: Division;
  readonly server: PostgresqlServer;
  readonly database: string;
  readonly machines: readonly Machine[];
  readonly census: Census;
  readonly acts: Acts;
  readonly api: FaultProxy;
  /** A site that runs no daemon, for commands: its way to the database has no faults. */
  readonly desk: Site;
  readonly #files: Files;
  readonly #space: Namespace;

  /** @param environment of all daemons */
  static async open(division: Division, environment: Readonly<Record<string, string>> = {}): Promise<Bed> {
    const plane = await controlPlane();
    const space = await plane.namespace('campaign');
    // The notes of acts need the times of commits.
    const server = new PostgresqlServer({ track_commit_timestamp: 'on' });
    await server.start();
    const database = await newDatabase(server);
    const api = await FaultProxy.inFrontOf(plane);
    const census = await Census.begin(space, division.caps);
    const files = new Files({ division, plane, space, api });
    const desk = files.siteOf(0, server.url(database));
    const places: Pick<Machine, 'link' | 'site'>[] = [];
    for (let index = 0; index < division.daemons; index++) {
      const link = await Link.open(server);
      places.push({ link, site: files.siteOf(index, link.cutting.url(database)) });
    }
    const start = (some: typeof places) =>
      some.map((place): Machine => {
        const service = new Service(place.site, environment);
        return { ...place, service };
      });
    const first = start(places.slice(0, 1));
    await until('the first daemon has made its tables, and works', async () => {
      const [row] = await server.query<{ workers: number }>(
        'SELECT count(*) AS workers FROM workers',
        database,
      );
      return row !== undefined && row.workers > 0;
    });
    const acts = await division.beginActs(server, database);
    const machines = [...first, ...start(places.slice(1))];
    return new Bed({ division, server, database, machines, census, acts, api, desk }, files, space);
  }

  private constructor(parts: Parts, files: Files, space: Namespace) {
    this.division = parts.division;
    this.server = parts.server;
    this.database = parts.database;
    this.machines = parts.machines;
    this.census = parts.census;
    this.acts = parts.acts;
    this.api = parts.api;
    this.desk = parts.desk;
    this.#files = files;
    this.#space = space;
  }

  /** Asks the database; empty while it does not answer. */
  ask<Row>(text: string): Promise<Row[]> {
    return this.server.query<Row>(text, this.database).catch(() => []);
  }

  rows(): Promise<RowOfWorker[]> {
    return this.server.query<RowOfWorker>(
      'SELECT worker_id AS id, queue, status, creation_time AS created, end_time AS ended FROM workers',
      this.database,
    );
  }

  /** Changes the queues of all machines. */
  writeQueues(change: Readonly<Record<string, unknown>>): void {
    for (const { site } of this.machines) this.#files.writeQueues(site, change);
  }

  /** Leaves a command, which a daemon of then carries out: or none does, if it is gone before. */
  startCommand(...args: string[]): RunningDaemon {
    return this.desk.startWith(['--config', this.desk.config, ...args]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { service, site } of this.machines) {
      await service.close('kill');
      await site.clean();
    }
    await this.desk.clean();
    for (const { link } of this.machines) link.close();
    await this.census[Symbol.asyncDispose]();
    await this.api[Symbol.asyncDispose]();
    await this.server.stop();
    await this.#space[Symbol.asyncDispose]();
  }
}

interface FileParts {
  readonly division: Division;
  readonly plane: ControlPlane;
  readonly space: Namespace;
  readonly api: FaultProxy;
}

/** The settings and queue files of the machines, with kubeconfigs and templates. */
class Files {
  readonly #parts: FileParts;
  readonly #common: string | undefined;

  constructor(parts: FileParts) {
    this.#parts = parts;
    this.#common = parts.division.sharesFiles ? temporaryDirectory() : undefined;
  }

  siteOf(index: number, url: string): Site {
    const { division, plane, api } = this.#parts;
    const database = { url, sslmode: 'disable', leaseDuration, ...division.database(index) };
    const site = new Site({ settings: { ...settings, database }, queues: {} });
    for (const [queue, run] of Object.entries(division.lives)) {
      const { kubeconfig, template } = this.#filesOf(site, queue);
      plane.writeKubeconfig(kubeconfig, { server: api.url });
      writeFileSync(template, stringify(jobTemplate({ run })));
    }
    this.writeQueues(site, {});
    return site;
  }

  writeQueues(site: Site, change: Readonly<Record<string, unknown>>): void {
    const { division, space } = this.#parts;
    const queues = Object.entries(division.caps.queues).map(([name, caps]) => {
      const queue = { ...caps, ...division.options?.[name], ...change };
      return [name, kubernetesQueue(space, { ...this.#filesOf(site, name), queue })] as const;
    });
    site.writeQueues(Object.fromEntries(queues));
  }

  /** Each queue has a kubeconfig of its own, which is a cluster of its own: queues that share one would stay together. */
  #filesOf(site: Site, queue: string): { readonly kubeconfig: string; readonly template: string } {
    const directory = this.#common ?? site.directory;
    return { kubeconfig: join(directory, `kubeconfig-${queue}`), template: join(directory, `${queue}.yaml`) };
  }
}

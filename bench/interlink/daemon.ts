import { chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { readSidecarConfig, sidecarFiles } from '../../src/daemon/interlink/daemon-files.ts';
import { freePort } from '../../test/env/kubernetes/ports.ts';
import { until } from '../../test/support/until.ts';
import type { BenchPool } from '../htcondor/pool.ts';
import { countingPrograms, type Started, startedPrograms } from '../htcondor/programs.ts';
import { RealDaemon } from '../shared/daemon.ts';
import { Kubelet } from './kubelet.ts';

export interface InterlinkSite {
  readonly bench: BenchPool;
  readonly factory: string;
  /** `spool`: the schedd is asked by its name, and gets all files; `local`: it is that of the machine, and the daemon has the user of its jobs. */
  readonly schedd: 'spool' | 'local';
  /** Lines of the template beside those that the command writes. */
  readonly template?: Readonly<Record<string, unknown>>;
  /** Options of the monitor. */
  readonly monitor?: Readonly<Record<string, unknown>>;
  /** Options of `sources.interlink` beside those that the command writes. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Jobs send their states while they run. */
  readonly reports?: true;
}

/** Below the directory of the daemon. A socket's path may have 107 bytes. */
const socket = 'sidecar.sock';

/** The real program with the files that `thresher interlink` writes. */
export class InterlinkDaemon extends RealDaemon {
  readonly kubelet: Kubelet;
  readonly #site: InterlinkSite;
  readonly #programs: string;

  constructor(directory: string, site: InterlinkSite) {
    const { bench, schedd } = site;
    const { uid, gid } = bench.pool;
    const programs = join(directory, 'programs.log');
    super(directory, {
      environment: {
        ...bench.environment,
        ...countingPrograms(programs),
        ...(schedd === 'local' && { CONDOR_CONFIG: join(directory, 'condor_config') }),
      },
      ...(schedd === 'local' && { user: { uid, gid } }),
    });
    this.#site = site;
    this.#programs = programs;
    this.kubelet = new Kubelet(join(directory, socket));
  }

  /** Starts it, and waits until the pool answers. */
  async begin(): Promise<void> {
    await this.#write();
    this.start();
    await until('the backend answers', async () => {
      await this.kubelet.ping();
      return true;
    });
  }

  async end(): Promise<void> {
    this.kubelet.close();
    await this.kill('SIGTERM');
  }

  /** All that it started since. @param since ms UTC */
  programsSince(since: number): readonly Started[] {
    return startedPrograms(this.#programs).filter(({ at }) => at >= since);
  }

  /** Pods that are on its disk. */
  recordedPods(): number {
    return readdirSync(join(this.directory, 'data', 'pods')).length;
  }

  async #write(): Promise<void> {
    const { bench, factory, schedd, template, monitor, options, reports } = this.#site;
    const { pool } = bench;
    const flags = {
      socket,
      ...(schedd === 'spool' && { scheddName: pool.remote.schedd, collectorHost: pool.pool }),
    };
    const files = sidecarFiles(flags, readSidecarConfig('', ''), join(this.directory, 'data'));
    const { settings, queues } = files;
    const port = reports === true ? await freePort(26_500) : 0;
    const url = `http://127.0.0.1:${port}/sources/interlink/reports`;
    const own = {
      ...settings,
      master: { ...settings.master, factoryId: factory },
      ...(reports === true && { http: { port } }),
      sources: {
        interlink: {
          ...settings.sources.interlink,
          allowHost: true,
          ...(reports === true && { reportUrl: url }),
          ...options,
        },
      },
    };
    const queue = { ...queues.interlink, monitor: { ...queues.interlink.monitor, ...monitor } };
    const write = (name: string, text: string) => {
      writeFileSync(join(this.directory, name), text);
    };
    // The tokens of the pool belong to root. The schedd of the machine knows its user by the file system.
    write('condor_config', `include : ${pool.local.config}\nSEC_CLIENT_AUTHENTICATION_METHODS = FS\n`);
    write('thresher.yaml', stringify(own));
    write('queues.json', JSON.stringify({ interlink: queue }));
    write('job.yaml', stringify({ ...files.template, ...template }));
    for (const name of ['', 'logs', 'state', 'data']) {
      mkdirSync(join(this.directory, name), { recursive: true });
      chownSync(join(this.directory, name), pool.uid, pool.gid);
    }
  }
}

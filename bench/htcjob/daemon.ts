import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { condorQueue, shellTemplate } from '../../test/support/htcondor-site.ts';
import { leaseOf } from '../../test/support/htcjobs.ts';
import type { ControlPlane } from '../../test/support/kubernetes.ts';
import { until } from '../../test/support/until.ts';
import { type BenchPool, openDirectory } from '../htcondor/pool.ts';
import { RealDaemon } from '../shared/daemon.ts';
import { Rows } from '../shared/rows.ts';

export interface HtcJobSite {
  readonly plane: ControlPlane;
  readonly bench: BenchPool;
  /** Namespace whose HTCJobs it runs. */
  readonly namespace: string;
  readonly factory: string;
  /** Lines of the template beside those of every job. */
  readonly template?: Readonly<Record<string, unknown>>;
  /** Queue of workers without HTCJobs: how many there are at most. Absent: a queue of HTCJobs. */
  readonly plain?: true;
}

/** The real program with one queue on a real schedd, whose jobs HTCJobs ask for, or the queue itself. */
export class HtcJobDaemon extends RealDaemon {
  readonly jobs: string;
  readonly #site: HtcJobSite;

  constructor(directory: string, site: HtcJobSite) {
    const { plane, bench, namespace, factory } = site;
    const { pool, directory: open, environment } = bench;
    super(directory, {
      settings: {
        master: { factoryId: factory },
        ...(site.plain !== true && {
          sources: {
            htcjob: {
              k8s_config_file: 'kubeconfig',
              namespaces: [namespace],
              ...leaseOf({ name: namespace }),
              runtime: 'none',
              // The brake for clusters that serve others, too, would be all that is measured.
              requestsPerSecond: 1_000_000,
            },
          },
        }),
      },
      environment,
    });
    this.#site = site;
    this.jobs = join(open, factory);
    openDirectory(pool, this.jobs);
    plane.writeKubeconfig(join(directory, 'kubeconfig'));
    // The jobs are those of the pool's user, who reads their payloads below the state directory.
    chmodSync(directory, 0o755);
    for (const name of ['state', 'logs']) mkdirSync(join(directory, name), { mode: 0o711 });
    chownSync(join(directory, 'logs'), pool.uid, pool.gid);
    this.serve(0);
  }

  /** Takes HTCJobs; or fills the queue with so many workers of its own. */
  serve(workers: number): void {
    const { bench, template, plain } = this.#site;
    const { pool } = bench;
    const options = {
      template: 'job.sub.yaml',
      submitter: { eventLog: pool.eventLog },
      monitor: { pollInterval: 10 },
    };
    writeFileSync(
      join(this.directory, 'job.sub.yaml'),
      stringify(shellTemplate({ directory: this.jobs }, 'exit 0', { request_cpus: 1, ...template })),
    );
    const { submitter, monitor, sweeper } = condorQueue(pool, options);
    const sections = { submitter, monitor, sweeper };
    if (plain === true) {
      this.wantOf(sections, workers);
      return;
    }
    const most = { maxWorkers: 20_000, nQueueLimitWorker: 20_000 };
    const queue = { queueStatus: 'online', mapType: 'NoJob', demand: 'htcjob', ...most, ...sections };
    writeFileSync(join(this.directory, 'panda_queueconfig.json'), JSON.stringify({ BENCH: queue }, null, 2));
  }

  /** Waits until it follows its HTCJobs and its schedd. */
  override async ready(): Promise<void> {
    if (this.#site.plain === true) return super.ready();
    await until('the daemon follows its HTCJobs', () => this.isReady());
  }

  isReady(): boolean {
    try {
      const rows = new Rows(this.database);
      try {
        const [report] = rows.list<{ reasons: string }>('SELECT reasons FROM queues');
        return report !== undefined && !/htcjob-|not-listed|status-unknown/.test(report.reasons);
      } finally {
        rows.close();
      }
    } catch {
      // Its tables are being made.
      return false;
    }
  }

  /** The log of a new pool begins with the first job, and a thousand HTCJobs at once have more Events than are written. */
  override complaints(): string[] {
    const expected = ['of eventLog does not exist', 'Events of HTCJobs are left out'];
    return super.complaints().filter((line) => !expected.some((words) => line.includes(words)));
  }
}

import type { WorkerStatus } from '../../src/worker/status.ts';
import { applyCrd, HtcJobs, leaseOf } from './htcjobs.ts';
import { type ControlPlane, controlPlane, type Namespace } from './kubernetes.ts';
import { kubernetesSite } from './kubernetes-site.ts';
import type { Site } from './site.ts';

type Access = Parameters<ControlPlane['writeKubeconfig']>[1];

/** One operator on some namespaces, whose jobs are processes of this machine. Queue OTHER takes no HTCJobs. */
export function htcJobSite(
  plane: ControlPlane,
  spaces: Pick<Namespace, 'name'> | readonly Pick<Namespace, 'name'>[],
  more: Readonly<Record<string, unknown>> = {},
  access: Access = {},
): Site {
  const namespaces = [spaces].flat().map(({ name }) => name);
  const lease = leaseOf({ name: namespaces[0] ?? 'default' });
  const runtimes = ['none', 'apptainer', 'singularity', 'container'];
  const options = { k8s_config_file: 'kubeconfig', namespaces, ...lease, runtimes, ...more };
  return kubernetesSite(
    plane,
    {
      queues: {
        Q: { demand: 'htcjob', maxWorkers: 200, nQueueLimitWorker: 200 },
        OTHER: { demand: 'none' },
      },
      settings: { sources: { htcjob: options } },
    },
    {},
    access,
  );
}

export interface JobWorker {
  /** Number of its job. */
  readonly job: number;
  readonly workerID: number;
  readonly status: WorkerStatus;
}

/** An operator with two namespaces for all cases of a file: the start of a daemon takes longer than most of them. */
export class HtcJobHome implements AsyncDisposable {
  readonly plane: ControlPlane;
  readonly space: Namespace;
  /** For a case that removes a namespace. */
  readonly other: Namespace;
  readonly jobs: HtcJobs;
  readonly site: Site;

  static async open(): Promise<HtcJobHome> {
    const plane = await controlPlane();
    await applyCrd(plane);
    return new HtcJobHome(plane, await plane.namespace('htcjob'), await plane.namespace('htcjob'));
  }

  private constructor(plane: ControlPlane, space: Namespace, other: Namespace) {
    this.plane = plane;
    this.space = space;
    this.other = other;
    this.jobs = new HtcJobs(space);
    this.site = htcJobSite(plane, [space, other]);
  }

  /** The workers of one HTCJob, oldest first, as `thresher htcjob show` prints them. */
  async workersOf(name: string): Promise<readonly JobWorker[]> {
    const { stdout } = await this.site.run(
      'htcjob',
      'show',
      `${this.space.name}/${name}`,
      '--output',
      'json',
    );
    return (JSON.parse(stdout) as [{ readonly workers: readonly JobWorker[] }])[0].workers;
  }

  /** Those among these workers that run as processes. */
  living(workers: readonly JobWorker[]): readonly JobWorker[] {
    const live = this.site.liveShims();
    return workers.filter(({ workerID }) => live.has(workerID));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.clean();
    await this.jobs.letGo();
    await new HtcJobs(this.other).letGo();
    await this.space[Symbol.asyncDispose]();
    await this.other[Symbol.asyncDispose]();
  }
}

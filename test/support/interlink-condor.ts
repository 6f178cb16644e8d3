/** The sidecar for interLink on a real schedd of this machine. Containers run as commands of the machine, in the directory of their Pod. */
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ContainerState, TerminatedState } from '../../src/clients/interlink/wire.ts';
import { readSidecarConfig, sidecarFiles } from '../../src/daemon/interlink/daemon-files.ts';
import { clearSpaces, clientOf, type CondorSpace, condorSpace, type Pool } from './htcondor.ts';
import { condorEnvironment, condorQueue, condorSite } from './htcondor-site.ts';
import { type InterlinkClient, podOf } from './interlink-client.ts';
import { dataRoot, untilListening } from './interlink-site.ts';
import type { RunningDaemon, Site } from './site.ts';
import { until } from './until.ts';

const { signal } = new AbortController();
const run = promisify(execFile);

export type TestPod = ReturnType<typeof podOf>;

/** A job that finds no machine. */
export const nowhere = 'requirements = false';

export class InterlinkCondor {
  readonly pool: Pool;
  readonly space: CondorSpace;
  readonly site: Site;
  readonly environment: Record<string, string>;
  readonly #queue: (monitor: object) => Record<string, unknown>;

  constructor(pool: Pool, monitor: object = {}) {
    this.pool = pool;
    this.space = condorSpace(pool);
    const { template } = sidecarFiles({}, readSidecarConfig('', ''), '');
    const limits = { maxWorkers: 1000, nQueueLimitWorker: 1000, maxNewWorkersPerCycle: 1000 };
    const queue = { ...limits, demand: 'interlink' };
    this.#queue = (more) => condorQueue(pool, { template: 'job.yaml', monitor: { ...more }, queue });
    this.site = condorSite(
      {
        queues: { Q: this.#queue(monitor) },
        settings: {
          master: { factoryId: this.space.factory },
          monitor: { missingGrace: 1 },
          sources: {
            interlink: {
              socket: 'sidecar.sock',
              dataRoot,
              sharedDataRoot: true,
              lookInterval: 0.2,
              allowHost: true,
              submitCommands: ['*'],
              createTimeout: 80,
            },
          },
        },
      },
      { 'job.yaml': template },
    );
    const { site } = this;
    // The jobs are those of the pool's user, who reads payloads and writes outputs.
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    mkdirSync(site.path(dataRoot, 'output'), { recursive: true });
    chmodSync(site.stateDir, 0o711);
    for (const directory of [site.path('logs'), site.path(dataRoot, 'output')])
      chownSync(directory, pool.uid, pool.gid);
    this.environment = condorEnvironment(pool, site.directory);
  }

  /** @param monitor options of the monitor from now on */
  async start(
    monitor?: object,
  ): Promise<{ readonly daemon: RunningDaemon; readonly client: InterlinkClient }> {
    if (monitor !== undefined) this.site.writeQueues({ Q: this.#queue(monitor) });
    const daemon = this.site.start([], this.environment);
    return { daemon, client: await untilListening(this.site, daemon) };
  }

  async clean(): Promise<void> {
    await this.site.clean();
    await clearSpaces(this.pool, [this.space]);
  }

  /** A Pod with a script that runs in the directory of its output. @param flags lines of a submit description */
  pod(name: string, script: string, flags = ''): TestPod {
    const uid = randomUUID();
    const pod = podOf(name, uid, `cd ${this.site.path(dataRoot, 'output', uid)} || exit 99; ${script}`);
    if (flags !== '') pod.metadata.annotations['slurm-job.vk.io/flags'] = flags;
    const [container] = pod.spec.containers;
    Object.assign(container ?? {}, { image: 'host', resources: { requests: { memory: '32Mi' } } });
    return pod;
  }

  /** A file in the directory of a Pod. */
  file(pod: TestPod, name: string): string {
    return join(this.site.path(dataRoot, 'output', pod.metadata.uid), name);
  }

  has(pod: TestPod, name: string): boolean {
    return existsSync(this.file(pod, name));
  }

  read(pod: TestPod, name: string): string {
    return this.has(pod, name) ? readFileSync(this.file(pod, name), 'utf8') : '';
  }

  put(pod: TestPod, name: string): void {
    writeFileSync(this.file(pod, name), '');
  }

  /** Whether anything is left of it on the disk. */
  isLeft({ metadata: { uid } }: TestPod): boolean {
    return [`pods/${uid}.json`, `output/${uid}`].some((name) => existsSync(this.site.path(dataRoot, name)));
  }

  /** Ids of the jobs in the queue, in order. @param which `any`: also those that are on their way out */
  async jobIds(which: 'any' | 'staying' = 'staying'): Promise<string[]> {
    const { mine } = this.space;
    const constraint = which === 'any' ? mine : `${mine} && JobStatus =!= 3`;
    const jobs = await clientOf(this.pool, 'local').queue(constraint, ['ClusterId', 'ProcId'], signal);
    return jobs.map(({ ClusterId, ProcId }) => `${String(ClusterId)}.${String(ProcId)}`).sort();
  }

  /** Has a running job leave its machine. */
  async vacate(jid: string): Promise<void> {
    const { config, tokens } = this.pool.local;
    const env = { ...process.env, CONDOR_CONFIG: config, _CONDOR_SEC_TOKEN_DIRECTORY: tokens };
    await run(join(this.pool.programs, 'condor_vacate_job'), [jid], { env });
  }

  /** Does to the job of a Pod as an operator would. @param jid "CLUSTER.PROC" */
  async act(action: 'hold' | 'release' | 'remove', jid: string, reason: string): Promise<void> {
    const [cluster, proc] = jid.split('.');
    const job = `${this.space.mine} && ClusterId == ${cluster ?? 0} && ProcId == ${proc ?? 0}`;
    await clientOf(this.pool, 'local').act(action, job, reason, signal);
  }
}

/** The first container's state, as soon as it fits. */
export async function untilState(
  client: InterlinkClient,
  pod: TestPod,
  what: string,
  fits: (state: ContainerState) => boolean,
  deadline?: number,
): Promise<ContainerState> {
  let seen: ContainerState | undefined;
  return until(
    () => `the Pod ${pod.metadata.name} ${what}; it is ${JSON.stringify(seen)}`,
    async () => {
      seen = await client.state(pod);
      return fits(seen) && seen;
    },
    deadline,
  );
}

export async function untilRuns(client: InterlinkClient, pod: TestPod): Promise<string> {
  const { running } = await untilState(client, pod, 'runs', (state) => state.running !== undefined);
  return running?.startedAt ?? '';
}

export async function untilEnded(client: InterlinkClient, pod: TestPod): Promise<TerminatedState> {
  const { terminated } = await untilState(client, pod, 'ends', (state) => state.terminated !== undefined);
  if (terminated === undefined) throw new Error('it has not ended');
  return terminated;
}

/**
 * The sidecar on the real pool: its jobs are spooled to the remote schedd, a real apptainer runs their containers, and running jobs
 * send their states to the daemon.
 */
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ad } from '../../src/clients/htcondor/json-objects.ts';
import type {
  ContainerState,
  ContainerStatus,
  PodStatus,
  TerminatedState,
} from '../../src/clients/interlink/wire.ts';
import { readSidecarConfig, sidecarFiles } from '../../src/daemon/interlink/daemon-files.ts';
import { freePort } from '../env/kubernetes/ports.ts';
import { type Apptainer, apptainer } from './apptainer.ts';
import { clearSpaces, clientOf, type CondorSpace, condorPool, condorSpace, type Pool } from './htcondor.ts';
import { condorEnvironment, condorQueue, condorSite } from './htcondor-site.ts';
import { type Asked, createBody, type CreateBody } from './interlink-bodies.ts';
import type { Address, InterlinkClient } from './interlink-client.ts';
import { dataRoot, untilListening } from './interlink-site.ts';
import type { Site } from './site.ts';
import { until } from './until.ts';

const { signal } = new AbortController();

export class PodSite {
  readonly image: string;
  readonly client: InterlinkClient;
  readonly address: Address;
  /** A directory of the machine that Pods may mount. Containers wait for files that a test writes there. */
  readonly gates: string;
  readonly #parts: Parts;

  private constructor(parts: Parts, client: InterlinkClient) {
    this.image = parts.runtime.image;
    this.gates = parts.space.directory;
    this.client = client;
    this.address = { socketPath: parts.site.path('sidecar.sock') };
    this.#parts = parts;
  }

  static async start(): Promise<PodSite> {
    const [pool, runtime] = await Promise.all([condorPool(), apptainer()]);
    const space = condorSpace(pool);
    const port = await freePort();
    const { template } = sidecarFiles({}, readSidecarConfig('', ''), '');
    const options = {
      socket: 'sidecar.sock',
      dataRoot,
      lookInterval: 0.3,
      runtime: join(runtime.bin, 'apptainer'),
      imagePaths: [runtime.image],
      hostPaths: [space.directory],
      submitCommands: ['+MaxRuntime', '+Note', 'priority'],
      allowHost: true,
      allowPreExec: true,
      allowJobScript: true,
      reportUrl: `http://127.0.0.1:${port}/sources/interlink/reports`,
    };
    const queue = { demand: 'interlink', maxWorkers: 100, nQueueLimitWorker: 100 };
    const site = condorSite(
      {
        queues: {
          pods: condorQueue(pool, {
            kind: 'remote',
            template: 'job.yaml',
            queue,
            submitter: { submitCommands: ['+Note'] },
          }),
        },
        settings: {
          master: { factoryId: space.factory },
          http: { enabled: true, port },
          sources: { interlink: options },
        },
      },
      { 'job.yaml': template },
    );
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    const daemon = site.start([], condorEnvironment(pool, site.directory));
    const parts = { pool, runtime, space, site };
    try {
      return new PodSite(parts, await untilListening(site, daemon));
    } catch (error) {
      await cleanUp(parts);
      throw error;
    }
  }

  /** Sends a Pod to /create, and does not wait for the answer. */
  send(name: string, asked: Asked): SentPod {
    const body = createBody(name, asked, this.image);
    const created = this.client.ask('POST', '/create', body).then(({ status, text }) => {
      if (status !== 200) throw new Error(`/create of ${name} answered ${status}: ${text}`);
      return (JSON.parse(text) as { PodJID: string }).PodJID;
    });
    return new SentPod(this, body.pod, created);
  }

  /** Directory of a Pod's files on the side of the daemon. */
  output(uid: string): string {
    return this.#parts.site.path(dataRoot, 'output', uid);
  }

  /** The job as the schedd has it in its queue; undefined if it has left. */
  async job(jid: string, attributes: readonly string[] = ['ClusterId']): Promise<Ad | undefined> {
    const ads = await clientOf(this.#parts.pool, 'remote').queue(constraintOf(jid), attributes, signal);
    return ads[0];
  }

  /** Attributes of the job, whether it is in the queue or has left it. */
  async attributes(jid: string, names: readonly string[]): Promise<Ad | undefined> {
    const there = await this.job(jid, names);
    if (there !== undefined) return there;
    const client = clientOf(this.#parts.pool, 'remote');
    const [past] = await client.history(constraintOf(jid), names, 1, signal);
    return past;
  }

  /** Makes a directory below the gates that jobs can write. */
  gate(name: string): string {
    const path = join(this.gates, name);
    mkdirSync(path);
    chownSync(path, this.#parts.pool.uid, this.#parts.pool.gid);
    return path;
  }

  async clean(): Promise<void> {
    await cleanUp(this.#parts);
  }
}

async function cleanUp({ site, pool, space, runtime }: Parts): Promise<void> {
  await site.clean();
  await clearSpaces(pool, [space]);
  runtime[Symbol.dispose]();
}

function constraintOf(jid: string): string {
  const [cluster = '', proc = ''] = jid.split('.');
  return `ClusterId == ${cluster} && ProcId == ${proc}`;
}

interface Parts {
  readonly pool: Pool;
  readonly runtime: Apptainer;
  readonly space: CondorSpace;
  readonly site: Site;
}

/** A Pod that was sent, seen by what interLink is answered. */
export class SentPod {
  readonly pod: CreateBody['pod'];
  readonly uid: string;
  readonly #site: PodSite;
  readonly #created: Promise<string>;
  #last: PodStatus | undefined;

  constructor(site: PodSite, pod: CreateBody['pod'], created: Promise<string>) {
    this.pod = pod;
    this.uid = pod.metadata.uid;
    this.#site = site;
    this.#created = created;
    // The test that looks at this Pod reports it.
    created.catch(() => undefined);
  }

  /** Id of the job. @throws Error for anything but 200 */
  get jid(): Promise<string> {
    return this.#created;
  }

  /** The containers' states by name, as the virtual kubelet takes them. */
  async containers(): Promise<Readonly<Record<string, ContainerStatus>>> {
    await this.#created;
    this.#last = await this.#site.client.status(this.pod);
    const { containers, initContainers } = this.#last;
    return Object.fromEntries([...initContainers, ...containers].map((one) => [one.name, one]));
  }

  async state(container: string): Promise<ContainerState> {
    const { [container]: status } = await this.containers();
    if (status === undefined) throw new Error(`/status does not list ${container}`);
    return status.state;
  }

  /** Waits until a container has such a state. */
  async until<K extends keyof ContainerState>(
    container: string,
    state: K,
  ): Promise<NonNullable<ContainerState[K]>> {
    const found = await until(
      () => `${container} is ${state}: ${JSON.stringify(this.#last)}`,
      async () => (await this.state(container))[state],
    );
    return found as NonNullable<ContainerState[K]>;
  }

  /** Waits until all containers have ended. */
  ends(): Promise<Readonly<Record<string, TerminatedState>>> {
    return until(
      () => `all containers have ended: ${JSON.stringify(this.#last)}`,
      async () => {
        const all = Object.values(await this.containers());
        const ended = all.flatMap(({ name, state: { terminated } }) =>
          terminated === undefined ? [] : [[name, terminated] as const],
        );
        return ended.length === all.length && Object.fromEntries(ended);
      },
    );
  }

  /** Waits until all containers have ended with 0, and a container's log is there. */
  async says(container = 'main'): Promise<string> {
    const ends = await this.ends();
    const log = await this.log(container);
    const failed = Object.entries(ends).filter(([, { exitCode }]) => exitCode !== 0);
    if (failed.length > 0) throw new Error(`${JSON.stringify(Object.fromEntries(failed))}: ${log}`);
    return log;
  }

  /** A container's whole log, when its job is over: then HTCondor has brought all of it. */
  async log(container = 'main'): Promise<string> {
    const jid = await this.#created;
    await until('the job has left the queue', async () => (await this.#site.job(jid)) === undefined);
    const { status, text } = await this.#site.client.logs(this.uid, {}, container);
    if (status !== 200) throw new Error(`/getLogs answered ${status}: ${text}`);
    return text;
  }
}

/** Opens a gate that containers wait at. */
export function open(gate: string, name: string, text = ''): void {
  writeFileSync(join(gate, name), text);
}

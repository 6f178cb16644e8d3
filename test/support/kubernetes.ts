import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import type { Agent } from 'node:https';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { type Access, accessFrom, agentFor, type Answer, ask } from '../env/kubernetes/api.ts';
import { killAll, recordOf } from '../env/kubernetes/processes.ts';
import type { Status } from '../env/kubernetes/status.ts';
import { temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

const run = promisify(execFile);
const testEnv = resolve(import.meta.dirname, '../../scripts/test-env');

/** What tests look at of any object; the rest is there, and unknown. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly { readonly name: string; readonly uid: string }[];
  };
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface ContainerStatus {
  readonly name: string;
  readonly restartCount: number;
  readonly state: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: { readonly startedAt: string };
    readonly terminated?: { readonly exitCode: number; readonly reason?: string; readonly message?: string };
  };
}

export interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

export interface Job extends KubeObject {
  readonly status: {
    readonly active?: number;
    readonly succeeded?: number;
    readonly failed?: number;
    readonly conditions?: readonly Condition[];
  };
}

/** An answer of the API server that is no success. */
export class ApiError extends Error {
  readonly status: number;
  /** NotFound, AlreadyExists, Conflict ... as its Status says. */
  readonly reason: string;

  constructor(what: string, { status, text }: Answer) {
    super(`${what}: ${status} ${text.slice(0, 2000)}`);
    this.status = status;
    this.reason = /"reason":\s*"(\w+)"/.exec(text)?.[1] ?? '';
  }
}

/** Paths are those of the API: /api/v1/namespaces/NAME/pods, /apis/batch/v1/namespaces/NAME/jobs/NAME. */
export class KubeClient {
  readonly access: Access;
  readonly #agent: Agent;

  constructor(access: Access) {
    this.access = access;
    this.#agent = agentFor(access);
  }

  /** Any request; what is not an error is for the caller to say. */
  async raw(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    return ask(this.access, this.#agent, { method, path, body: text, headers: { ...type, ...headers } });
  }

  /** @throws ApiError */
  async request<T>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<T> {
    const answer = await this.raw(method, path, body, headers);
    if (answer.status >= 300) throw new ApiError(`${method} ${path}`, answer);
    return JSON.parse(answer.text) as T;
  }

  create<T extends KubeObject>(path: string, object: object): Promise<T> {
    return this.request('POST', path, object);
  }

  get<T extends KubeObject>(path: string): Promise<T> {
    return this.request('GET', path);
  }

  /** @returns undefined if it does not exist. */
  async find<T extends KubeObject>(path: string): Promise<T | undefined> {
    try {
      return await this.get<T>(path);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(
    path: string,
    labelSelector = '',
    fieldSelector = '',
  ): Promise<readonly T[]> {
    const query = new URLSearchParams({ labelSelector, fieldSelector });
    return (await this.request<{ items: T[] }>('GET', `${path}?${query.toString()}`)).items;
  }

  /** A merge patch: null removes. */
  patch<T extends KubeObject>(path: string, patch: object): Promise<T> {
    return this.request('PATCH', path, patch, { 'content-type': 'application/merge-patch+json' });
  }

  /** Its Pods go with a Job. What is gone already is no error. */
  async delete(path: string, options: object = { propagationPolicy: 'Background' }): Promise<void> {
    const answer = await this.raw('DELETE', path, options);
    if (answer.status >= 300 && answer.status !== 404) throw new ApiError(`DELETE ${path}`, answer);
  }

  close(): void {
    this.#agent.destroy();
  }
}

export interface JobOptions {
  readonly name?: string;
  /** How its Pods live: the table in test/env/kubernetes/stages.yaml, with or without `play/`. */
  readonly play?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Beside one container named `pilot`. */
  readonly podSpec?: Readonly<Record<string, unknown>>;
  /** Beside `backoffLimit: 0`. */
  readonly spec?: Readonly<Record<string, unknown>>;
}

export const container = (name: string): object => ({
  name,
  image: 'docker.io/library/busybox:latest',
  imagePullPolicy: 'IfNotPresent',
  command: ['sh', '-c', 'exit 0'],
});

/** A namespace of a test's own: `await using space = await plane.namespace()`. */
export class Namespace implements AsyncDisposable {
  readonly name: string;
  readonly client: KubeClient;
  readonly #gone = new AbortController();

  constructor(name: string, client: KubeClient) {
    this.name = name;
    this.client = client;
  }

  /** Aborted once the test no longer needs the namespace. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  jobs(name?: string): string {
    return `/apis/batch/v1/namespaces/${this.name}/jobs${name === undefined ? '' : `/${name}`}`;
  }

  /** Any resource of the core group: pods, secrets, events ... */
  core(resource: string, name?: string): string {
    return `/api/v1/namespaces/${this.name}/${resource}${name === undefined ? '' : `/${name}`}`;
  }

  createJob(options: JobOptions = {}): Promise<Job> {
    const { name = `job-${randomName()}`, play = {}, labels = {}, podSpec = {}, spec = {} } = options;
    const annotations = Object.fromEntries(
      Object.entries(play).map(([key, value]) => [key.startsWith('play/') ? key : `play/${key}`, value]),
    );
    return this.client.create(this.jobs(), {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name, labels },
      spec: {
        backoffLimit: 0,
        template: {
          metadata: { annotations, labels },
          spec: { restartPolicy: 'Never', containers: [container('pilot')], ...podSpec },
        },
        ...spec,
      },
    });
  }

  async podsOf(job: KubeObject): Promise<readonly Pod[]> {
    return this.client.list<Pod>(this.core('pods'), `batch.kubernetes.io/job-name=${job.metadata.name}`);
  }

  /** Waits for a state of a Job's Pod. @throws with its last status. */
  untilPod(job: KubeObject, what: string, condition: (pod: Pod) => boolean): Promise<Pod> {
    return this.#untilLast(what, () => this.podsOf(job), condition);
  }

  untilJob(job: KubeObject, what: string, condition: (job: Job) => boolean): Promise<Job> {
    const path = this.jobs(job.metadata.name);
    return this.#untilLast(what, async () => [await this.client.get<Job>(path)], condition);
  }

  async #untilLast<T>(
    what: string,
    look: () => Promise<readonly (T & { status: object })[]>,
    condition: (object: T) => boolean,
  ): Promise<T> {
    let last: readonly { status: object }[] = [];
    try {
      return await until(what, async () => {
        const seen = await look();
        last = seen;
        return seen.find(condition);
      });
    } catch (error) {
      const statuses = JSON.stringify(last.map(({ status }) => status));
      throw new Error(`${error instanceof Error ? error.message : ''}; last seen: ${statuses}`, {
        cause: error,
      });
    }
  }

  /** Not waited for: the namespace controller takes seconds, and nobody uses the name again. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone.abort();
    await this.client.delete(`/api/v1/namespaces/${this.name}`, {});
  }
}

export interface FakeNode extends AsyncDisposable {
  readonly name: string;
  /** For a Pod that shall run there, and the only ones that do. */
  readonly podSpec: Readonly<Record<string, unknown>>;
}

/** A running control plane with fake nodes. */
export class ControlPlane {
  readonly status: Status & Required<Pick<Status, 'server' | 'kubeconfig' | 'certificates' | 'ports'>>;
  readonly client: KubeClient;

  constructor(status: Status) {
    const { server, kubeconfig, certificates, ports } = status;
    if (server === undefined || kubeconfig === undefined || certificates === undefined || ports === undefined)
      throw new Error(`the control plane does not run: ${JSON.stringify(status)}`);
    this.status = { ...status, server, kubeconfig, certificates, ports };
    this.client = new KubeClient(accessFrom(certificates, ports.apiServer));
  }

  /** A fresh namespace in which Pods can be created. */
  async namespace(prefix = 'test'): Promise<Namespace> {
    const name = `${prefix}-${randomName()}`;
    await this.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    });
    await until(`${name} has its service account`, () =>
      this.client.find(`/api/v1/namespaces/${name}/serviceaccounts/default`),
    );
    return new Namespace(name, this.client);
  }

  /** A node for one test. `size`: cpu, memory, pods as in a Node's status; without them it is as good as endless. */
  async fakeNode(size?: Readonly<Record<string, string>>): Promise<FakeNode> {
    const name = `fake-${randomName()}`;
    const path = `/api/v1/nodes/${name}`;
    const taint = { key: 'test/node', value: name, effect: 'NoSchedule' };
    const status = size && { status: { capacity: size, allocatable: size } };
    await this.client.create('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'test/node': name }, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
      spec: { taints: [taint] },
      ...status,
    });
    await until(`${name} is ready`, async () => {
      const { text } = await this.client.raw('GET', path);
      return (
        /"type":\s*"Ready",\s*"status":\s*"True"/.test(text) && !text.includes('node.kubernetes.io/not-ready')
      );
    });
    const podSpec = {
      nodeSelector: { 'test/node': name },
      tolerations: [{ key: 'test/node', operator: 'Exists' }],
    };
    return { name, podSpec, [Symbol.asyncDispose]: () => this.client.delete(path, {}) };
  }

  /**
   * Its kubelet is heard of no more, as after the node controller's grace of 50 s. Said here: the conditions that it sets
   * then. Everything later (taint, deletion of the Pods, which stay terminating) is the controllers' own.
   */
  async loseNode(name: string): Promise<void> {
    const lose = { metadata: { annotations: { 'play/lost': 'true' } } };
    const lastTransitionTime = new Date().toISOString();
    const setReady = (path: string, condition: object) =>
      this.client.request(
        'PATCH',
        `${path}/status`,
        { status: { conditions: [{ type: 'Ready', lastTransitionTime, ...condition }] } },
        { 'content-type': 'application/strategic-merge-patch+json' },
      );
    await this.client.patch(`/api/v1/nodes/${name}`, lose);
    const pods = await this.client.list<Pod>('/api/v1/pods', undefined, `spec.nodeName=${name}`);
    for (const { metadata } of pods) {
      const path = `/api/v1/namespaces/${metadata.namespace ?? ''}/pods/${metadata.name}`;
      await this.client.patch(path, lose);
      await setReady(path, { status: 'False', reason: 'NodeNotReady' });
    }
    const message = 'Kubelet stopped posting node status.';
    await setReady(`/api/v1/nodes/${name}`, { status: 'Unknown', reason: 'NodeStatusUnknown', message });
  }

  /** A token of a service account, of `seconds` (at least 600). */
  async token(namespace: string, serviceAccount: string, seconds = 3600): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' };
    const spec = { expirationSeconds: seconds };
    const answer = await this.client.request<{ status: { token: string } }>('POST', path, { ...body, spec });
    return answer.status.token;
  }

  /**
   * Writes a kubeconfig. `server`: a proxy in front, for instance. `token`, or a file with one: who speaks; without it the
   * administrator.
   */
  writeKubeconfig(
    path: string,
    options: {
      readonly server?: string;
      readonly token?: string;
      readonly tokenFile?: string;
      readonly namespace?: string;
    } = {},
  ): void {
    const { server = this.status.server, token, tokenFile, namespace } = options;
    const file = (name: string) => join(this.status.certificates, name);
    const admin = { 'client-certificate': file('admin.crt'), 'client-key': file('admin.key') };
    const bearer = { ...(token !== undefined && { token }), ...(tokenFile !== undefined && { tokenFile }) };
    const user = token === undefined && tokenFile === undefined ? admin : bearer;
    const context = { cluster: 'test', user: 'test', ...(namespace !== undefined && { namespace }) };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server, 'certificate-authority': file('ca.crt') } }],
      users: [{ name: 'test', user }],
      contexts: [{ name: 'test', context }],
      'current-context': 'test',
    };
    writeFileSync(path, stringify(config), { mode: 0o600 });
  }
}

let shared: Promise<ControlPlane> | undefined;

/**
 * The control plane that all tests share, started by the first who asks; mocha's other processes wait for it at the lock
 * of scripts/test-env. It stays for the next run: scripts/test, or `./scripts/test-env kubernetes stop`, ends it. What
 * kills a part of it needs an ownControlPlane().
 */
export function controlPlane(): Promise<ControlPlane> {
  shared ??= start({}, ['--for', String(process.ppid)]);
  return shared;
}

let real: Promise<ControlPlane> | undefined;

/**
 * A control plane whose only node is real: kubelet, containerd, Pods that run. Shared and started as controlPlane() is; it
 * has no fake nodes, and no annotation says how a Pod lives. Images: busybox:latest of Docker Hub's name, nothing else.
 */
export function realNode(): Promise<ControlPlane> {
  real ??= start({}, ['--node', '--for', String(process.ppid)]).then(({ status }) => {
    const { node, ports } = status;
    if (node?.running !== true) throw new Error(`the node does not run: ${JSON.stringify(status)}`);
    const { server, kubeconfig, certificates, port } = node;
    return new ControlPlane({
      ...status,
      server,
      kubeconfig,
      certificates,
      ports: { ...ports, apiServer: port },
    });
  });
  return real;
}

/** One for a single test, which may kill its parts. Four seconds and half a gigabyte each: use it where it must be. */
export class OwnControlPlane implements AsyncDisposable {
  readonly directory: string;
  readonly plane: ControlPlane;
  readonly #environment: Readonly<Record<string, string>>;

  static async start(): Promise<OwnControlPlane> {
    const { status } = await controlPlane();
    const directory = temporaryDirectory();
    const assets = join(directory, 'assets');
    mkdirSync(assets);
    for (const [name, program] of Object.entries(status.programs)) {
      if (program !== null) symlinkSync(program.path, join(assets, name));
    }
    const environment = { THRESHER_TEST_ENV: directory, KUBEBUILDER_ASSETS: assets };
    return new OwnControlPlane(directory, environment, await start(environment));
  }

  private constructor(directory: string, environment: Readonly<Record<string, string>>, plane: ControlPlane) {
    this.directory = directory;
    this.#environment = environment;
    this.plane = plane;
  }

  /** `kill -9`, as a power cut would: comes back when it is gone. */
  async kill(component: string): Promise<void> {
    const { pids } = await readStatus(this.#environment);
    const record = recordOf(pids[component] ?? 0);
    if (record === undefined) throw new Error(`${component} does not run: ${JSON.stringify(pids)}`);
    await killAll([record]);
  }

  /** Ends all of it in the same way, does `work` with what etcd keeps, and starts all of it again on its ports. */
  async whileStopped(work: (etcdData: string) => void): Promise<void> {
    const { pids } = await readStatus(this.#environment);
    // As long as one of its parts runs it is not made anew.
    for (const component of Object.keys(pids).filter((name) => name !== 'kwok')) await this.kill(component);
    work(join(this.directory, 'kubernetes', 'etcd'));
    await this.restart();
    // What kwok remembers is of another time.
    await this.kill('kwok');
    await this.restart();
  }

  /** Starts what was killed, with its data, on its port. */
  async restart(): Promise<void> {
    (await start(this.#environment)).client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.plane.client.close();
    await run(testEnv, ['kubernetes', 'stop'], { env: { ...process.env, ...this.#environment } });
  }
}

async function start(
  environment: Readonly<Record<string, string>>,
  more: readonly string[] = [],
): Promise<ControlPlane> {
  await run(testEnv, ['kubernetes', 'start', ...more], { env: { ...process.env, ...environment } });
  return new ControlPlane(await readStatus(environment));
}

async function readStatus(environment: Readonly<Record<string, string>>): Promise<Status> {
  // Its exit code says only what stands in it.
  const { stdout } = await run(testEnv, ['kubernetes', 'status'], {
    env: { ...process.env, ...environment },
  }).catch((error: unknown) => error as { stdout: string });
  return JSON.parse(stdout) as Status;
}

function randomName(): string {
  return randomBytes(4).toString('hex');
}

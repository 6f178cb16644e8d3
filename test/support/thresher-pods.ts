import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { inContainerd } from '../env/kubernetes/node.ts';
import { freePort } from '../env/kubernetes/ports.ts';
import { apply, objectPath } from './applied.ts';
import { jobTemplate } from './kubernetes-site.ts';
import { container, type ControlPlane, type KubeObject, type Namespace, type Pod } from './kubernetes.ts';
import { execIn, type Executed } from './pod-exec.ts';
import { PostgresqlServer } from './postgresql.ts';
import { temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

const run = promisify(execFile);

type Fields = Record<string, unknown>;

/** A Pod of thresher with what these tests look at. */
export interface ThresherPod extends Pod {
  readonly status: Pod['status'] & {
    readonly podIP?: string;
    readonly containerStatuses?: readonly {
      readonly ready: boolean;
      readonly restartCount: number;
      readonly containerID?: string;
      readonly state: { readonly terminated?: Terminated };
      readonly lastState?: { readonly terminated?: Terminated };
    }[];
  };
}

interface Terminated {
  readonly exitCode: number;
  readonly message?: string;
}

export interface Deployment extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly generation: number };
  readonly spec: {
    readonly replicas: number;
    readonly strategy: { readonly type: string };
    readonly template: { readonly spec: { readonly containers: Fields[] } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
  };
}

interface ConfigMap extends KubeObject {
  readonly data: Record<string, string>;
}

/** What /readyz says. */
export interface Readiness {
  readonly status: string;
  readonly leader?: string;
}

export const isDeployment = (object: KubeObject): object is Deployment => object.kind === 'Deployment';
export const isConfigMap = (object: KubeObject): object is ConfigMap => object.kind === 'ConfigMap';

/** Number of workers that the queue of these tests has. */
export const wanted = 2;
/** A daemon starts in a second, and on a busy machine in twenty, ms. */
const longest = 180_000;

/** thresher in Pods of the real test node, by the objects of templates/kubernetes/thresher. */
export class ThresherPods implements AsyncDisposable {
  readonly plane: ControlPlane;
  /** The namespace of thresher, and that of its workers. */
  readonly home: Namespace;
  readonly pilots: Namespace;
  readonly #token = randomBytes(16).toString('hex');
  #volume: string | undefined;

  static async make(plane: ControlPlane): Promise<ThresherPods> {
    const [home, pilots] = await Promise.all([plane.namespace('thresher'), plane.namespace('pilots')]);
    return new ThresherPods(plane, home, pilots);
  }

  private constructor(plane: ControlPlane, home: Namespace, pilots: Namespace) {
    this.plane = plane;
    this.home = home;
    this.pilots = pilots;
  }

  /**
   * Creates the objects as an operator does who has filled them in: with an image, settings and a queue of workers that run on.
   * @param settings what they add to those of the manifests
   */
  async apply(
    objects: readonly KubeObject[],
    image: string,
    settings: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
    secrets: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { client } = this.home;
    await this.#createSecret({ 'http-token': this.#token, ...secrets });
    for (const object of placed(objects, this.home, this.pilots)) {
      if (object.kind === 'Namespace') {
        // The rules for Pods of the namespace count here, too.
        const { name, labels } = object.metadata;
        if (labels !== undefined) await client.patch(`/api/v1/namespaces/${name}`, { metadata: { labels } });
        continue;
      }
      if (isConfigMap(object)) fillIn(object, settings);
      if (isDeployment(object)) makeSmall(object, image);
      if (object.kind === 'PersistentVolumeClaim') await this.#makeVolume(object);
      await apply(client, object, object.metadata.namespace ?? '');
    }
  }

  /** Pods of thresher that are not being deleted, the oldest first. */
  async pods(): Promise<readonly ThresherPod[]> {
    return (await this.allPods()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  /** Also those whose containers are about to end. */
  allPods(): Promise<readonly ThresherPod[]> {
    return this.home.client.list(this.home.core('pods'), 'app.kubernetes.io/name=thresher');
  }

  /** Pods that Kubernetes calls ready, once there are so many. */
  ready(count: number): Promise<readonly ThresherPod[]> {
    return this.#untilPods(`${count} Pods are ready`, async () => {
      const ready = (await this.pods()).filter(isReady);
      return ready.length === count && ready;
    });
  }

  /** The Pod that leads, and the others, once as many Pods are ready as there shall be. */
  async roles(count: number): Promise<{ readonly leader: ThresherPod; readonly standbys: ThresherPod[] }> {
    return this.#untilPods(`one of ${count} Pods leads`, async () => {
      const pods = (await this.pods()).filter(isReady);
      if (pods.length !== count) return undefined;
      const said = await Promise.all(pods.map((pod) => this.readiness(pod)));
      const [leader, ...more] = pods.filter((_, at) => said[at]?.status === 'ready');
      const standbys = pods.filter((_, at) => said[at]?.status === 'standby');
      if (leader === undefined || more.length > 0 || standbys.length !== count - 1) return undefined;
      return { leader, standbys };
    });
  }

  /** With all that Kubernetes shows of the Pods, where it is waited for in vain. */
  async #untilPods<T>(what: string, condition: () => Promise<T | undefined | false>): Promise<T> {
    try {
      return await until(what, condition, longest);
    } catch (error) {
      const seen = (await this.pods()).map(({ metadata, status }) => ({ name: metadata.name, ...status }));
      const told = error instanceof Error ? error.message : String(error);
      throw new Error(`${told}; last seen: ${JSON.stringify(seen)}`, { cause: error });
    }
  }

  /** What a daemon answers at a path, asked from this machine with the token of the Secret. */
  async ask(pod: ThresherPod, path: string): Promise<unknown> {
    const headers = { authorization: `Bearer ${this.#token}` };
    const address = `http://${pod.status.podIP ?? ''}:25085${path}`;
    const answer = await fetch(address, { headers, signal: AbortSignal.timeout(10_000) });
    return answer.json();
  }

  async readiness(pod: ThresherPod): Promise<Readiness> {
    return (await this.ask(pod, '/readyz')) as Readiness;
  }

  /** Ids of running workers, once there are as many as the queue wants. */
  async workers(): Promise<readonly number[]> {
    return this.#untilPods('all wanted workers run', async () => {
      const [pod] = (await this.pods()).filter(isReady);
      if (pod === undefined) return undefined;
      const running = (await this.ask(pod, '/api/workers?status=running')) as { workerID: number }[];
      return running.length === wanted && running.map(({ workerID }) => workerID).sort((a, b) => a - b);
    });
  }

  /** As `kubectl exec POD -- COMMAND`. */
  exec(pod: ThresherPod, ...command: readonly string[]): Promise<Executed> {
    const path = this.home.core('pods', pod.metadata.name);
    return execIn(this.home.client.access, path, command, { timeout: longest });
  }

  /** As when the kernel runs out of memory: its one process dies, and the Pod stays. */
  async killContainer(pod: ThresherPod): Promise<void> {
    const id = (pod.status.containerStatuses?.[0]?.containerID ?? '').replace('containerd://', '');
    const { directory = '' } = this.plane.status.node ?? {};
    await inContainerd(dirname(directory), ['tasks', 'kill', '-s', 'SIGKILL', id]);
  }

  async deletePod(pod: ThresherPod, options: object = {}): Promise<void> {
    await this.home.client.delete(this.home.core('pods', pod.metadata.name), options);
  }

  get deployment(): string {
    return objectPath('Deployment', this.home.name, 'thresher');
  }

  async scale(replicas: number): Promise<void> {
    await this.home.client.patch(`${this.deployment}/scale`, { spec: { replicas } });
  }

  async #createSecret(files: Readonly<Record<string, string>>): Promise<void> {
    const metadata = { name: 'thresher' };
    await this.home.client.create(this.home.core('secrets'), { kind: 'Secret', metadata, stringData: files });
  }

  /** A directory of the node: nothing on it makes volumes. */
  async #makeVolume(claim: KubeObject): Promise<void> {
    const { name } = claim.metadata;
    const path = join(temporaryDirectory(), 'state');
    mkdirSync(path);
    // Kubernetes gives no directory of a node to the group of a Pod.
    await run('chown', ['1000:1000', path]);
    this.#volume = `thresher-${randomBytes(4).toString('hex')}`;
    Object.assign((claim as unknown as { spec: Fields }).spec, {
      storageClassName: '',
      volumeName: this.#volume,
    });
    await this.home.client.create('/api/v1/persistentvolumes', {
      kind: 'PersistentVolume',
      metadata: { name: this.#volume },
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: '',
        hostPath: { path },
        claimRef: { namespace: this.home.name, name },
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.home[Symbol.asyncDispose]();
    await this.pilots[Symbol.asyncDispose]();
    for (const space of [this.home, this.pilots])
      await this.home.client.delete(space.core('pods'), { gracePeriodSeconds: 0 });
    if (this.#volume !== undefined)
      await this.home.client.delete(`/api/v1/persistentvolumes/${this.#volume}`, {});
  }
}

const isReady = ({ status }: ThresherPod): boolean => status.containerStatuses?.[0]?.ready === true;

/** Objects of the namespaces `thresher` and `pilots`, in two others. */
export function placed(
  objects: readonly KubeObject[],
  home: Pick<Namespace, 'name'>,
  pilots: Pick<Namespace, 'name'>,
): KubeObject[] {
  const names: Readonly<Record<string, string>> = { thresher: home.name, pilots: pilots.name };
  const moved = JSON.parse(
    JSON.stringify(objects, (key, value: unknown) =>
      key === 'namespace' && typeof value === 'string' ? (names[value] ?? value) : value,
    ),
  ) as KubeObject[];
  return moved.map((object) => {
    if (object.kind !== 'Namespace') {
      if (isConfigMap(object))
        for (const [file, text] of Object.entries(object.data))
          object.data[file] = text.replace(/("k8s_namespace": )"pilots"/, `$1"${pilots.name}"`);
      return object;
    }
    const name = names[object.metadata.name] ?? object.metadata.name;
    return { ...object, metadata: { ...object.metadata, name } };
  });
}

function fillIn({ data }: ConfigMap, settings: Readonly<Record<string, object>>): void {
  const written = data['thresher.yaml'];
  if (written !== undefined) {
    const all = parse(written) as Record<string, object>;
    for (const [section, more] of Object.entries(settings)) all[section] = { ...all[section], ...more };
    data['thresher.yaml'] = stringify(all);
    return;
  }
  const queues = JSON.parse(data['panda_queueconfig.json'] ?? '') as Record<string, Fields>;
  for (const queue of Object.values(queues)) {
    Object.assign(queue, { maxWorkers: wanted, nQueueLimitWorker: wanted });
    // As much of the node's processor and memory as there may be Pods at once.
    Object.assign(queue['submitter'] as Fields, {
      cpuAdjustRatio: 1,
      memoryAdjustRatio: 1,
      maxDiskCount: 100,
    });
  }
  data['panda_queueconfig.json'] = JSON.stringify(queues);
  const pilot = { ...container('pilot'), command: ['sh', '-c', 'exec sleep 100000'] };
  data['pilot.yaml'] = stringify(jobTemplate({}, { containers: [pilot], terminationGracePeriodSeconds: 1 }));
}

/** The node of the tests has two cores, and a Pod is ready when it is, not up to 5 s later. */
function makeSmall({ spec }: Deployment, image: string): void {
  for (const one of spec.template.spec.containers) {
    one['image'] = image;
    one['resources'] = { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '1Gi' } };
    for (const probe of ['startupProbe', 'readinessProbe']) (one[probe] as Fields)['periodSeconds'] = 1;
  }
}

/** A server of this machine that Pods of the node reach, with a password. */
export async function postgresqlForPods(
  plane: ControlPlane,
  password: string,
): Promise<{ readonly server: PostgresqlServer; readonly url: (database: string) => string }> {
  // Pods reach the API server at an address of this machine.
  const slice = await plane.client.get<KubeObject & { endpoints: { addresses: string[] }[] }>(
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes',
  );
  const host = slice.endpoints[0]?.addresses[0] ?? '';
  const port = await freePort();
  const server = new PostgresqlServer({ listen_addresses: host, port: String(port) }, { port });
  appendFileSync(join(server.data, 'pg_hba.conf'), 'host all all all scram-sha-256\n');
  await server.start();
  await server.query(`ALTER ROLE thresher PASSWORD '${password}'`);
  return { server, url: (database) => `postgresql://thresher@${host}:${port}/${database}` };
}

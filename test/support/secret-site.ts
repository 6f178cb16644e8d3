import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { type Authority, issue, type Issued, makeAuthority, proxyText, rfcProxy } from './credentials.ts';
import { FaultProxy } from './fault-proxy.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from './kubernetes-site.ts';
import { container, type ControlPlane, type Job, type KubeObject, type Namespace } from './kubernetes.ts';
import type { RunningDaemon, Site } from './site.ts';

interface Secret extends KubeObject {
  readonly data: Readonly<Record<string, string>>;
}
interface Shown {
  readonly name: string;
  readonly manager: string;
  readonly state: string;
  readonly remaining: number | null;
  readonly message: string | null;
}

export const hour = 3_600_000;
/** Harvester's name of the module. */
export const secretManager = 'pandaharvester.harvestercredmanager.k8s_secret_cred_manager';
/** Where pilots find it. */
export const proxySecretPath = '/proxy/atlas.pilot.proxy';
const volumes = [{ name: 'proxy', secret: { secretName: 'proxy-secret' } }];
const volumeMounts = [{ name: 'proxy', mountPath: '/proxy' }];

/** A Job whose pilot mounts the Secret. */
export function mountingTemplate(pilot: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const containers = [{ ...container('pilot'), volumeMounts, ...pilot }];
  return jobTemplate({}, { containers, volumes });
}

/** A user's certificate, of a CA of its own. */
export function makeUser(): { readonly ca: Authority; readonly user: Issued } {
  const ca = makeAuthority();
  return { ca, user: issue(ca.directory, ca, { name: '/CN=Jane' }) };
}

/** Puts a new proxy where the site has it, as tools do: renamed into place. @returns its text. */
export function putProxy(site: Site, { ca, user }: ReturnType<typeof makeUser>, lifetime: number): string {
  const until = Date.now() + lifetime;
  const leaf = issue(ca.directory, user, { name: '/CN=Jane/CN=1', extensions: rfcProxy, until });
  const text = proxyText(leaf, user);
  writeFileSync(site.path('new'), text, { mode: 0o600 });
  renameSync(site.path('new'), site.path('atlas.pilot.proxy'));
  return text;
}

/** A site whose queue Q needs a proxy in a Secret, with an API server that may fail. */
export class SecretSite {
  readonly plane: ControlPlane;
  readonly space: Namespace;
  readonly proxy: FaultProxy;
  readonly #owner: ReturnType<typeof makeUser>;
  #site: Site | undefined;
  #daemon: RunningDaemon | undefined;

  static async on(plane: ControlPlane, owner: ReturnType<typeof makeUser>): Promise<SecretSite> {
    const space = await plane.namespace('credentials');
    return new SecretSite(plane, space, await FaultProxy.inFrontOf(plane), owner);
  }

  private constructor(
    plane: ControlPlane,
    space: Namespace,
    proxy: FaultProxy,
    owner: ReturnType<typeof makeUser>,
  ) {
    [this.plane, this.space, this.proxy, this.#owner] = [plane, space, proxy, owner];
  }

  get site(): Site {
    if (this.#site === undefined) throw new Error('it was not begun');
    return this.#site;
  }

  get daemon(): RunningDaemon {
    if (this.#daemon === undefined) throw new Error('it was not started');
    return this.#daemon;
  }

  /** Writes its files. */
  begin(
    queue: Readonly<Record<string, unknown>>,
    settings: Readonly<Record<string, Record<string, unknown>>> = {},
  ): void {
    const [submitter, common] = [{ proxySecretPath }, { k8s_namespace: this.space.name }];
    const queues = { Q: kubernetesQueue(this.space, { submitter, queue: { common, ...queue } }) };
    const quick = { submitter: { sleepTime: 0.2 }, ...settings };
    const files = { 'job.yaml': mountingTemplate() };
    this.#site = kubernetesSite(this.plane, { queues, settings: quick }, files, { server: this.proxy.url });
  }

  start(): void {
    this.#daemon = this.site.start();
  }

  /** The queue's own manager. */
  inQueue(): Record<string, unknown> {
    return {
      module: secretManager,
      name: 'K8sSecretCredManager',
      k8s_config_file: 'kubeconfig',
      k8s_namespace: '${common.k8s_namespace}',
      proxy_files: ['atlas.pilot.proxy'],
    };
  }

  /** What the manager's own JSON file says. */
  plan(): Record<string, unknown> {
    const { name } = this.space;
    return { k8s_namespace: name, k8s_config_file: 'kubeconfig', proxy_files: ['atlas.pilot.proxy'] };
  }

  renew(lifetime: number): string {
    return putProxy(this.site, this.#owner, lifetime);
  }

  /** Has the queue file read again. */
  touch(): void {
    const file = this.site.path('panda_queueconfig.json');
    writeFileSync(file, `${readFileSync(file, 'utf8')}\n`);
  }

  secret(): Promise<Secret> {
    return this.space.client.get<Secret>(this.space.core('secrets', 'proxy-secret'));
  }

  /** Whether the Secret has this proxy, to be waited for. */
  hasText(text: string): () => Promise<boolean> {
    return async () => {
      const { data } = await this.secret();
      return data['atlas.pilot.proxy'] === Buffer.from(text).toString('base64');
    };
  }

  /** How often the Secret was pushed. */
  patches(): number {
    return this.proxy.count({ verb: 'patch', resource: 'secrets' });
  }

  jobs(): Promise<readonly Job[]> {
    return this.space.client.list<Job>(this.space.jobs());
  }

  async metrics(): Promise<string> {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(this.daemon.output())?.[0] ?? '';
    return (await fetch(`${url}/metrics`)).text();
  }

  async shown(): Promise<Shown[]> {
    return JSON.parse((await this.site.run('credentials', '--output', 'json')).stdout) as Shown[];
  }

  async reasons(): Promise<string[]> {
    return (await this.site.queue('Q')).reasons.map(({ code }) => code);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#site?.clean();
    await this.proxy[Symbol.asyncDispose]();
    await this.space[Symbol.asyncDispose]();
  }
}

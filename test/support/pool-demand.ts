import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parse } from 'yaml';
import { condorPool } from './htcondor.ts';
import { kubernetesQueue, kubernetesSite } from './kubernetes-site.ts';
import { runHere } from './command-line.ts';
import { smallPod, type Workload } from './pool-manifests.ts';
import type { PoolSite } from './pool-site.ts';
import type { RunningDaemon, Site } from './site.ts';

/** A template of thresher's workers in a pool of tests. */
export interface WorkerOptions {
  /** s without a job */
  readonly noClaim?: number;
  /** Secret with the token of such workers. Default: thresher gives each worker a token of its own, and they have no other. */
  readonly tokenSecret?: string;
  readonly image?: string;
  /** Central manager in place of the pool's. */
  readonly condorHost?: string;
}

export interface DemandOptions {
  readonly templates: Readonly<Record<string, WorkerOptions>>;
  readonly settings?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** The Job of `thresher pool manifests --worker-template`, small and quick. */
export async function workerTemplate(pool: PoolSite, options: WorkerOptions = {}): Promise<Workload> {
  const { noClaim = 10, tokenSecret, image = pool.image, condorHost } = options;
  const flags = ['--worker-template', '--image', image, '--security', pool.security];
  const { stdout, stderr } = await runHere('pool', 'manifests', ...flags);
  if (stderr !== '') throw new Error(`pool manifests --worker-template: ${stderr}`);
  const job = parse(stdout, { version: '1.1' }) as Workload;
  const { spec } = job.spec.template;
  smallPod(spec, image);
  const values: Readonly<Record<string, string>> = {
    STARTD_NOCLAIM_SHUTDOWN: String(noClaim),
    ...(condorHost !== undefined && { CONDOR_HOST: condorHost }),
  };
  for (const container of spec.containers) {
    const others = (container.env ?? []).filter(({ name }) => !(name in values));
    // Else the worker would prefer the token that thresher gives it.
    if (tokenSecret !== undefined)
      container.command = ['sh', '-c', 'unset THRESHER_PAYLOAD_DIR; exec htcondor-pool worker'];
    container.env = [...others, ...Object.entries(values).map(([name, value]) => ({ name, value }))];
  }
  if (tokenSecret !== undefined) mountToken(spec, tokenSecret);
  return job;
}

function mountToken(spec: Workload['spec']['template']['spec'], secretName: string): void {
  const name = 'token';
  spec.volumes = [...(spec.volumes ?? []), { name, secret: { secretName, defaultMode: 0o440 } }];
  for (const container of spec.containers)
    container.volumeMounts = [
      ...(container.volumeMounts ?? []),
      { name, mountPath: '/etc/condor/tokens-orig.d', readOnly: true },
    ];
}

/** A daemon on this machine that gives workers to a pool in Pods, whose collector it reaches by the address of the node. */
export class DemandSite {
  readonly pool: PoolSite;
  readonly site: Site;
  readonly #environment: Record<string, string>;

  static async make(pool: PoolSite, options: DemandOptions): Promise<DemandSite> {
    const { programs } = await condorPool();
    const { tokens, config, collector } = await pool.fromOutside(programs);
    const templates = await Promise.all(
      Object.entries(options.templates).map(
        async ([name, worker]) => [name, await workerTemplate(pool, worker)] as const,
      ),
    );
    const source = {
      condorPool: collector,
      condorConfig: config,
      tokenDirectory: tokens,
      interval: 1,
      joinTimeout: 30,
      signingKeyFile: join(pool.files, 'signing-key'),
    };
    const site = kubernetesSite(
      pool.plane,
      {
        queues: {},
        settings: {
          ...options.settings,
          qconf: { configFile: 'panda_queueconfig.json', checkInterval: 0.5 },
          sources: { 'htcondor-idle': { ...source, ...options.settings?.['sources'] } },
        },
      },
      Object.fromEntries(templates),
    );
    return new DemandSite(pool, site, {
      PATH: `${programs}${delimiter}${process.env['PATH'] ?? ''}`,
      CONDOR_CONFIG: config,
    });
  }

  private constructor(pool: PoolSite, site: Site, environment: Record<string, string>) {
    this.pool = pool;
    this.site = site;
    this.#environment = environment;
  }

  /** The queues of the daemon from now on. `template` of each is the name of one of the templates. */
  writeQueues(
    queues: Readonly<Record<string, { readonly template: string; readonly [option: string]: unknown }>>,
  ): void {
    const submitter = { nCore: 1, minRamCount: 1024, maxDiskCount: 100 };
    const written = Object.entries(queues).map(
      ([name, { template, ...queue }]) =>
        [name, kubernetesQueue(this.pool.space, { template, submitter, queue })] as const,
    );
    this.site.writeQueues(Object.fromEntries(written));
  }

  start(): RunningDaemon {
    return this.site.start([], this.#environment);
  }

  /** A subcommand of thresher in the environment of the daemon. @throws unless it ends well */
  async run(...words: string[]): Promise<string> {
    const before = { ...process.env };
    Object.assign(process.env, this.#environment);
    try {
      const { status, stdout, stderr } = await this.site.run(...words);
      if (status !== 0)
        throw new Error(`thresher ${words.join(' ')} ended with ${String(status)}: ${stderr}`);
      return stdout;
    } finally {
      process.env = before;
    }
  }

  /** Writes a slot ad like another, of another size. */
  resized(from: string, to: string, size: Readonly<Record<string, number>>): void {
    let text = readFileSync(this.site.path(from), 'utf8');
    for (const [name, value] of Object.entries(size))
      text = text.replace(new RegExp(`^((?:TotalSlot|Total)?${name}) *=.*$`, 'gim'), `$1 = ${value}`);
    writeFileSync(this.site.path(to), text);
  }

  /** Writes a slot ad like another, for machines of one queue: a job with `requirements = ThresherQueue == "QUEUE"` gets no other. */
  ofQueue(from: string, to: string, queue: string): void {
    const text = readFileSync(this.site.path(from), 'utf8').trimEnd();
    writeFileSync(this.site.path(to), `${text}\nThresherQueue = "${queue}"\n`);
  }
}

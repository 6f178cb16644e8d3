import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { apply, objectPath } from './applied.ts';
import { runHere } from './command-line.ts';
import { execIn, type Executed } from './pod-exec.ts';
import { ApiError, type ControlPlane, type KubeObject, type Namespace, type Pod } from './kubernetes.ts';
import { adjusted } from './pool-manifests.ts';
import { temporaryDirectory } from './temporary.ts';
import { until } from './until.ts';

const run = promisify(execFile);

export type Security = 'tokens' | 'password';
export type Role = 'central-manager' | 'schedd' | 'worker';

const gate = '/tmp/jobs-may-end';

/** Of a submit description: a job that runs until `endJobs`, however slow the machine is. */
export const untilTold = [
  'executable = /bin/sh',
  'transfer_executable = false',
  `arguments = "-c 'until [ -e ${gate} ]; do sleep 0.2; done'"`,
];

/** A Pod with what tests of pools look at. */
export interface PoolPod extends Pod {
  readonly status: Pod['status'] & { readonly podIP?: string; readonly hostIP?: string };
}

/** A pool in Pods of the real test node, in a namespace of its own, by the objects that thresher brings. */
export class PoolSite implements AsyncDisposable {
  readonly plane: ControlPlane;
  readonly space: Namespace;
  readonly image: string;
  /** What `thresher pool init` made. */
  readonly files: string;
  readonly security: Security;
  readonly #volume: string;

  /** Makes the secrets and nothing else: the objects come by `apply`. */
  static async make(plane: ControlPlane, image: string, security: Security = 'tokens'): Promise<PoolSite> {
    const files = join(temporaryDirectory(), 'htcondor-pool');
    const more = security === 'password' ? ['--pool-password'] : [];
    const { status, stderr } = await runHere('pool', 'init', '--directory', files, ...more);
    if (status !== 0) throw new Error(`pool init ended with ${String(status)}: ${stderr}`);
    const site = new PoolSite(plane, await plane.namespace('htcpool'), image, files, security);
    await site.#makeVolume();
    return site;
  }

  private constructor(
    plane: ControlPlane,
    space: Namespace,
    image: string,
    files: string,
    security: Security,
  ) {
    this.plane = plane;
    this.space = space;
    this.image = image;
    this.files = files;
    this.security = security;
    this.#volume = `spool-${randomBytes(4).toString('hex')}`;
  }

  path(kind: string, name: string): string {
    return objectPath(kind, this.space.name, name);
  }

  /** As `kubectl create secret generic NAME --from-file=KEY=FILE`. @param file path, from what `thresher pool init` made */
  async createSecret(name: string, key: string, file: string): Promise<void> {
    const data = { [key]: readFileSync(resolve(this.files, file)).toString('base64') };
    await this.space.client.create(this.space.core('secrets'), { kind: 'Secret', metadata: { name }, data });
  }

  async createSecrets(): Promise<void> {
    if (this.security === 'password')
      return this.createSecret('htcondor-pool-password', 'password', 'password');
    await this.createSecret('htcondor-pool-signing-key', 'POOL', 'signing-key');
    await this.createSecret('htcondor-schedd-token', 'token', 'schedd/token');
    await this.createSecret('htcondor-worker-token', 'token', 'worker/token');
  }

  /** Creates objects of the pool, as they are written but small and quick. @param wanted all of them, or those that it accepts */
  async apply(wanted: (object: KubeObject) => boolean = () => true): Promise<readonly KubeObject[]> {
    const objects = (await this.#manifests()).filter(wanted);
    for (const object of objects) await apply(this.space.client, object, this.space.name);
    return objects;
  }

  async #manifests(): Promise<readonly KubeObject[]> {
    const { stdout, stderr } = await runHere(
      'pool',
      'manifests',
      '--image',
      this.image,
      '--security',
      this.security,
    );
    if (stderr !== '') throw new Error(`pool manifests: ${stderr}`);
    const written = parseAllDocuments(stdout, { version: '1.1' }).map(
      (document) => document.toJS() as KubeObject,
    );
    return adjusted(written, { image: this.image, volume: this.#volume });
  }

  /** A directory of the node: nothing on it makes volumes. */
  async #makeVolume(): Promise<void> {
    const path = join(temporaryDirectory(), 'spool');
    mkdirSync(path, { mode: 0o777 });
    await run('chown', ['900:900', path]);
    await this.space.client.create('/api/v1/persistentvolumes', {
      kind: 'PersistentVolume',
      metadata: { name: this.#volume },
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: '',
        hostPath: { path },
        claimRef: { namespace: this.space.name, name: 'htcondor-schedd-spool' },
      },
    });
  }

  /** Pods of a role that are not being deleted, the oldest first. */
  async pods(role: Role | 'demand-worker'): Promise<readonly PoolPod[]> {
    const pods = await this.space.client.list<PoolPod>(
      this.space.core('pods'),
      `app.kubernetes.io/component=${role}`,
    );
    return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  /** The one Pod of a role, once its container runs. */
  pod(role: Role): Promise<PoolPod> {
    return until(
      `the Pod of the ${role} runs`,
      async () => {
        const [pod] = await this.pods(role);
        return pod?.status.containerStatuses?.[0]?.state.running === undefined ? undefined : pod;
      },
      60_000,
    );
  }

  /** As `kubectl exec POD -- COMMAND`. @throws unless it ends well */
  async exec(role: Role, ...command: readonly string[]): Promise<string> {
    const { metadata } = await this.pod(role);
    const { code, output, errors } = await this.execIn(metadata.name, ...command);
    if (code !== 0)
      throw new Error(`${command.join(' ')} in ${metadata.name} ended with ${code}: ${errors}${output}`);
    return output;
  }

  execIn(pod: string, ...command: readonly string[]): Promise<Executed> {
    return execIn(this.space.client.access, this.space.core('pods', pod), command);
  }

  /**
   * What commands of HTCondor on this machine need to reach the pool as its administrator: through the port of the node, which stays
   * when the central manager gets another Pod.
   */
  async fromOutside(
    programs: string,
  ): Promise<{ readonly collector: string; readonly config: string; readonly tokens: string }> {
    const service = await this.space.client.get<KubeObject & { spec: { ports: { nodePort: number }[] } }>(
      this.path('Service', 'htcondor-central-manager'),
    );
    const { status } = await this.pod('central-manager');
    const config = join(this.files, 'condor_config');
    writeFileSync(config, outside(programs, this.files));
    const collector = `${status.hostIP ?? ''}:${service.spec.ports[0]?.nodePort ?? 0}`;
    return { collector, config, tokens: join(this.files, 'admin') };
  }

  /** `condor_status` in the Pod of the central manager. */
  status(...words: readonly string[]): Promise<string> {
    return this.exec('central-manager', 'condor_status', ...words);
  }

  /** Types and names of all ads, as `condor_status -any` lists them: `Machine slot1@htcondor-worker-...`. */
  async daemons(): Promise<readonly string[]> {
    const lines = (await this.status('-any', '-af', 'MyType', 'Name')).trim().split('\n');
    return lines.filter((line) => line !== '');
  }

  /** Names of the slots, dynamic ones too. */
  async slots(): Promise<readonly string[]> {
    return (await this.daemons())
      .filter((line) => /^(Machine|Slot) /.test(line))
      .map((line) => line.split(' ')[1] ?? '');
  }

  untilDaemons(what: string, condition: (lines: readonly string[]) => boolean): Promise<readonly string[]> {
    let last: readonly string[] = [];
    return until(
      () => `${what}; last seen: ${last.join(', ')}`,
      async () => {
        last = await this.daemons();
        return condition(last) ? last : undefined;
      },
    );
  }

  /** Submits jobs of a user in the schedd's Pod. @returns the number of the cluster */
  async submit(description: readonly string[], user = 'alice'): Promise<number> {
    const lines = [
      ...['universe = vanilla', 'should_transfer_files = YES', 'when_to_transfer_output = ON_EXIT'],
      ...['initialdir = /tmp', 'request_disk = 1024', 'request_memory = 32', ...description],
    ];
    const script = `f=$(mktemp) && printf '%s\\n' "$@" >"$f" && as-user ${user} condor_submit -terse "$f"`;
    const output = await this.exec('schedd', 'sh', '-c', script, 'sh', ...lines);
    return Number.parseInt(output, 10);
  }

  /** `condor_q` of all users. */
  async queue(...words: readonly string[]): Promise<readonly string[]> {
    const output = await this.exec('schedd', 'condor_q', '-allusers', ...words);
    return output.split('\n').filter((line) => line !== '');
  }

  /** Ends the jobs of fixed workers that are `untilTold`, and those that begin later in the same Pods. */
  async endJobs(): Promise<void> {
    for (const { metadata } of await this.pods('worker')) {
      const { code, errors } = await this.execIn(metadata.name, 'touch', gate);
      if (code !== 0) throw new Error(`touch in ${metadata.name} ended with ${code}: ${errors}`);
    }
  }

  async scale(name: string, replicas: number): Promise<void> {
    await this.space.client.patch(`${this.path('Deployment', name)}/scale`, { spec: { replicas } });
  }

  /** Asks whether an eviction is let through, and evicts nothing. @returns the status of the API's answer: 201, or 429 where a PodDisruptionBudget forbids it */
  async eviction(pod: KubeObject): Promise<number> {
    const { name } = pod.metadata;
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace: this.space.name },
      deleteOptions: { dryRun: ['All'] },
    };
    const answer = await this.space.client.raw('POST', this.space.core('pods', `${name}/eviction`), eviction);
    if (answer.status >= 400 && answer.status !== 429) throw new ApiError(`eviction of ${name}`, answer);
    return answer.status;
  }

  /**
   * As a crash would: every daemon of the Pod dies at once, and then the Pod goes. Kubernetes waits for the end of the container, as a deletion
   * by force does not: two schedds would have one spool for a while.
   */
  async kill(role: Role): Promise<void> {
    const { metadata } = await this.pod(role);
    await this.execIn(metadata.name, 'sh', '-c', 'kill -KILL -1');
    await this.space.client.delete(this.space.core('pods', metadata.name), { gracePeriodSeconds: 1 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Otherwise workers would wait for the end of jobs before theirs.
    const pods = this.space.core('pods');
    await this.space[Symbol.asyncDispose]();
    await this.space.client.delete(pods, { gracePeriodSeconds: 0 });
    await this.space.client.delete(`/api/v1/persistentvolumes/${this.#volume}`);
  }
}

function outside(programs: string, directory: string): string {
  return `${[
    `RELEASE_DIR = ${dirname(programs)}`,
    ...[
      `LOCAL_DIR = ${directory}`,
      'LOG = $(LOCAL_DIR)',
      'SPOOL = $(LOCAL_DIR)',
      'CONDOR_HOST =',
      'COLLECTOR_HOST =',
    ],
    ...['BIN = $(RELEASE_DIR)/bin', 'LIBEXEC = $(RELEASE_DIR)/libexec/condor', 'LOCAL_CONFIG_DIR ='],
    ...['REQUIRE_LOCAL_CONFIG_FILE = False', 'ENABLE_IPV6 = False', 'CONDOR_IDS = 65534.65534'],
    ...[
      'TRUST_DOMAIN = htcondor-pool',
      'UID_DOMAIN = elsewhere.test',
      // Workers call `condor_drain` back (CCB), and no shared port listens here.
      'USE_SHARED_PORT = False',
      'SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS',
    ],
    ...[
      'SEC_CLIENT_AUTHENTICATION = REQUIRED',
      'SEC_CLIENT_ENCRYPTION = REQUIRED',
      'SEC_CLIENT_INTEGRITY = REQUIRED',
    ],
    `SEC_TOKEN_DIRECTORY = ${join(directory, 'admin')}`,
  ].join('\n')}\n`;
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import type { PoolObject, PoolShape } from './pool-objects.ts';
import type { PoolOptions } from './pool-options.ts';

const templates = join(import.meta.dirname, '../../../templates/kubernetes/htcondor-pool');
/** First part of all names in the templates. */
const usualName = 'htcondor';
/** Pods with it may talk to the pool. */
const clientLabel = 'htcondor-pool-client';
/** Memory of a worker that is not for jobs: its daemons', MiB. */
const daemonsMemory = 256;

/** Secrets that Pods refer to, by the end of their names. */
const secretNames = ['pool-signing-key', 'pool-password', 'schedd-token', 'worker-token'].map(
  (end) => `${usualName}-${end}`,
);

/**
 * The objects of a pool: those of the kustomization, with what the options say. The Secrets are not among them; `secretsOf`
 * makes these.
 */
export function poolManifests(options: PoolOptions): readonly PoolObject[] {
  const objects = baseObjects();
  if (options.security === 'password') for (const object of objects) inPasswordMode(object);
  // What the options say is no name of the templates: it comes after the renaming.
  const renamed = inOwnNames(objects, objects, options.name);
  for (const object of renamed) adjust(object, options);
  return renamed.map((object) => placed(object, options.namespace));
}

/** The template of thresher's workers (`k8s_yaml_file`), for this pool. Its namespace is the queue's. */
export function workerTemplate(options: PoolOptions): PoolObject {
  const job = plain(parse(readFileSync(join(templates, 'worker.yaml'), 'utf8'))) as PoolShape;
  if (options.security === 'password') inPasswordMode(job);
  const [renamed = job] = inOwnNames([job], baseObjects(), options.name);
  setContainer(renamed, options);
  return placed(renamed, undefined);
}

function baseObjects(): PoolShape[] {
  const read = (file: string) => readFileSync(join(templates, 'base', file), 'utf8');
  const { resources } = parse(read('kustomization.yaml')) as { readonly resources: readonly string[] };
  return resources.flatMap((file) =>
    parseAllDocuments(read(file)).map((document) => plain(document.toJS()) as PoolShape),
  );
}

/** Anchors in the files would else make two objects share a part. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function adjust(object: PoolShape, options: PoolOptions): void {
  setContainer(object, options);
  const { spec } = object;
  if (spec === undefined) return;
  switch (object.kind) {
    case 'Deployment':
      if (isOf(object, 'worker')) setWorker(object, options);
      return;
    case 'PersistentVolumeClaim':
      spec.resources = { requests: { storage: options.spoolSize } };
      if (options.storageClass !== undefined) spec.storageClassName = options.storageClass;
      return;
    case 'NetworkPolicy':
      for (const cidr of options.clients)
        for (const peers of [spec.ingress?.[0]?.from, spec.egress?.find(leadsToClients)?.to])
          peers?.push({ ipBlock: { cidr } });
      if (options.workerEgress.length > 0)
        spec.egress?.push({ to: options.workerEgress.map((cidr) => ({ ipBlock: { cidr } })) });
      return;
    default:
  }
}

/** The rule that names Pods by the label of clients alone. */
function leadsToClients({ to }: { readonly to?: readonly object[] }): boolean {
  return JSON.stringify(to?.[0] ?? {}).includes(clientLabel);
}

function setContainer({ spec }: PoolShape, { image, trustDomain }: PoolOptions): void {
  for (const container of spec?.template?.spec.containers ?? []) {
    container.image = image;
    const domain = container.env?.find(({ name }) => name === 'TRUST_DOMAIN');
    if (domain !== undefined) domain.value = trustDomain;
  }
}

function setWorker({ spec }: PoolShape, { workers, workerCpus, workerMemory }: PoolOptions): void {
  if (spec === undefined) return;
  spec.replicas = workers;
  const [container] = spec.template?.spec.containers ?? [];
  if (container === undefined) return;
  const size = { cpu: workerCpus.written, memory: `${workerMemory + daemonsMemory}Mi` };
  container.resources = {
    requests: { ...container.resources?.requests, ...size },
    limits: { ...container.resources?.limits, ...size },
  };
  const values: Readonly<Record<string, string>> = {
    // A part of a core is a slot with one: HTCondor counts whole ones.
    NUM_CPUS: String(Math.max(1, Math.floor(workerCpus.cores))),
    MEMORY: String(workerMemory),
  };
  for (const variable of container.env ?? []) {
    const value = values[variable.name];
    if (value !== undefined) variable.value = value;
  }
}

function isOf({ metadata }: PoolShape, component: string): boolean {
  return metadata.labels?.['app.kubernetes.io/component'] === component;
}

/** @param all those whose names may be referred to */
function inOwnNames(objects: readonly PoolShape[], all: readonly PoolShape[], name: string): PoolShape[] {
  const known = new Set([usualName, ...secretNames, ...all.map(({ metadata }) => metadata.name)]);
  const renamed = (value: unknown): unknown => {
    if (typeof value === 'string')
      return known.has(value) ? `${name}${value.slice(usualName.length)}` : value;
    if (Array.isArray(value)) return value.map(renamed);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, renamed(inner)]));
  };
  return objects.map((object) => renamed(object) as PoolShape);
}

function placed(
  { apiVersion, kind, metadata, ...more }: PoolShape,
  namespace: string | undefined,
): PoolObject {
  const { name, ...rest } = metadata;
  const place = { name, ...(namespace !== undefined && { namespace }) };
  return { apiVersion, kind, metadata: { ...place, ...rest }, ...more };
}

/** Volumes of the mode with tokens. */
const replaced = new Set(['signing-key', 'token']);
const name = 'pool-password';
const secretName = 'htcondor-pool-password';

/** Changes an object as the overlay `pool-password` does: one password in place of tokens. A test compares both. */
function inPasswordMode({ spec }: PoolShape): void {
  const pod = spec?.template?.spec;
  if (pod === undefined) return;
  for (const container of pod.containers) {
    container.env = [{ name: 'USE_POOL_PASSWORD', value: 'yes' }, ...(container.env ?? [])];
    container.volumeMounts = [
      { name, mountPath: '/etc/condor/pool_password', readOnly: true },
      ...(container.volumeMounts ?? []).filter((mount) => !replaced.has(mount.name)),
    ];
  }
  const others = (pod.volumes ?? []).filter((volume) => !replaced.has(volume.name));
  pod.volumes = [{ name, secret: { secretName, defaultMode: 0o440 } }, ...others];
}

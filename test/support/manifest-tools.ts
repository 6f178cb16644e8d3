import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { manifestPrograms, requireBinary } from '../env/kubernetes/binaries.ts';
import type { KubeObject } from './kubernetes.ts';

const run = promisify(execFile);
const checkout = resolve(import.meta.dirname, '../..');

export const poolTemplates = join(checkout, 'templates/kubernetes/htcondor-pool');
/** Kustomizations that run thresher in a cluster. */
export const thresherTemplates = {
  base: join(checkout, 'templates/kubernetes/thresher/base'),
  sqlite: join(checkout, 'templates/kubernetes/thresher/overlays/sqlite'),
};

export interface ManifestTools {
  /** Objects that `kustomize build DIRECTORY` makes. */
  kustomize(directory: string): Promise<readonly KubeObject[]>;
  /** Objects that `helm template` makes of a chart. */
  helm(chart: string, ...args: string[]): Promise<readonly KubeObject[]>;
}

/** kustomize and Helm, built where the machine has none. */
export async function manifestTools(environmentDirectory: string): Promise<ManifestTools> {
  await run(join(checkout, 'scripts/test-env'), ['kubernetes', 'build', '--manifests']);
  const [kustomize, helm] = manifestPrograms.map((program) => requireBinary(environmentDirectory, program));
  const objects = async (program: string | undefined, ...args: string[]) => {
    if (program === undefined) throw new Error('there is no such program');
    // Helm reads the settings of whoever runs it.
    const env = { ...process.env, HELM_CONFIG_HOME: '/nonexistent', HELM_DATA_HOME: '/nonexistent' };
    const { stdout } = await run(program, args, { env, maxBuffer: 2 ** 24 });
    return objectsIn(stdout);
  };
  return {
    kustomize: (directory) => objects(kustomize, 'build', directory),
    helm: (chart, ...args) => objects(helm, 'template', 'pool', chart, ...args),
  };
}

/** Objects of a YAML text, as the tools of Kubernetes read it. */
export function objectsIn(text: string): KubeObject[] {
  return parseAllDocuments(text, { version: '1.1' })
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

/**
 * Objects by kind and name, to be compared: lists whose entries have names are in the order of these, and `omit` says which keys of
 * metadata do not count.
 */
export function comparable(
  objects: readonly object[],
  omit: readonly string[] = [],
): Record<string, unknown> {
  const entries = objects.map((object) => {
    const { kind = '', metadata, ...rest } = object as KubeObject;
    const kept = Object.fromEntries(Object.entries(metadata).filter(([key]) => !omit.includes(key)));
    return [`${kind} ${metadata.name}`, ordered({ ...rest, kind, metadata: kept })] as const;
  });
  return Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value))
    return value
      .map(ordered)
      .map((item) => [nameOf(item), item] as const)
      .toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
      .map(([, item]) => item);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, inner]) => [key, ordered(inner)]),
  );
}

function nameOf(item: unknown): string {
  if (typeof item === 'object' && item !== null && 'name' in item) return String(item.name);
  return JSON.stringify(item);
}

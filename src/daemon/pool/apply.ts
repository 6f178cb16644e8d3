import type { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { objectPath, type Resource } from '../../clients/kubernetes/paths.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { PoolObject } from './pool-objects.ts';

/** By kind. */
const resources: Readonly<Record<string, Resource>> = {
  Secret: { group: '', version: 'v1', resource: 'secrets' },
  Service: { group: '', version: 'v1', resource: 'services' },
  ServiceAccount: { group: '', version: 'v1', resource: 'serviceaccounts' },
  PersistentVolumeClaim: { group: '', version: 'v1', resource: 'persistentvolumeclaims' },
  Deployment: { group: 'apps', version: 'v1', resource: 'deployments' },
  StatefulSet: { group: 'apps', version: 'v1', resource: 'statefulsets' },
  PodDisruptionBudget: { group: 'policy', version: 'v1', resource: 'poddisruptionbudgets' },
  NetworkPolicy: { group: 'networking.k8s.io', version: 'v1', resource: 'networkpolicies' },
};

/** Owner of the fields that thresher sets. */
const fieldManager = 'thresher-pool';

export interface ApplyOptions {
  readonly namespace: string;
  /** Ends after the dry run. */
  readonly dryRun: boolean;
  /** Takes fields that other programs set. */
  readonly force: boolean;
  readonly signal: AbortSignal;
}

export interface Applied {
  readonly kind: string;
  readonly name: string;
  readonly outcome: 'created' | 'changed' | 'unchanged';
}

/**
 * Applies objects on the server's side: all in a dry run first, so that a refused one changes nothing.
 * @throws ThresherError `pool-refused` with a line for each object that is refused, `pool-half-applied`
 */
export async function applyAll(
  client: KubernetesClient,
  objects: readonly PoolObject[],
  options: ApplyOptions,
): Promise<readonly Applied[]> {
  const refused: string[] = [];
  const rehearsed = await Promise.all(
    objects.map((object) =>
      rehearse(client, object, options).catch((error: unknown) => {
        // Only an answer of the server is about the object.
        if (!isKubernetesError(error) || error.status === undefined) throw error;
        refused.push(sentence(object, error, options));
        return undefined;
      }),
    ),
  );
  if (refused.length > 0) throw new ThresherError('pool-refused', [...new Set(refused)].join('\n'));
  const outcomes = rehearsed.filter((one) => one !== undefined);
  if (options.dryRun) return outcomes;
  // One after the other: Pods must find the Service that stands before them.
  for (const [done, object] of objects.entries()) {
    try {
      await send(client, object, options, false);
    } catch (error) {
      const message = `${done} of ${objects.length} objects are applied; ${sentence(object, error, options)}; repeat the command`;
      throw new ThresherError('pool-half-applied', message, {}, { cause: error });
    }
  }
  return outcomes;
}

/** An object as it is in the cluster; undefined where there is none. */
export async function liveObject(
  client: KubernetesClient,
  { kind, name }: { readonly kind: string; readonly name: string },
  { namespace, signal }: Pick<ApplyOptions, 'namespace' | 'signal'>,
): Promise<PoolObject | undefined> {
  try {
    return (await client.get(objectPath(resourceOf(kind), namespace, name), { signal })) as PoolObject;
  } catch (error) {
    if (isKubernetesError(error, 'kubernetes-not-found')) return undefined;
    throw error;
  }
}

async function rehearse(
  client: KubernetesClient,
  object: PoolObject,
  options: ApplyOptions,
): Promise<Applied> {
  const { kind, metadata } = object;
  const { name } = metadata;
  const before = await liveObject(client, { kind, name }, options);
  return { kind, name, outcome: outcomeOf(before, await send(client, object, options, true)) };
}

function send(
  client: KubernetesClient,
  object: PoolObject,
  { namespace, force, signal }: ApplyOptions,
  dryRun: boolean,
): Promise<object> {
  const path = objectPath(resourceOf(object.kind), namespace, object.metadata.name);
  const body = { ...object, metadata: { ...object.metadata, namespace } };
  return client.patch(path, body, { kind: 'apply', fieldManager, force, dryRun, signal });
}

function outcomeOf(before: PoolObject | undefined, after: object): Applied['outcome'] {
  if (before === undefined) return 'created';
  return essence(before) === essence(after) ? 'unchanged' : 'changed';
}

/** What the server keeps for itself: a change of it alone is none. */
const bookkeeping = new Set(['resourceVersion', 'managedFields', 'generation']);

/** An object without its status and the server's bookkeeping, as text. A dry run has no new version to compare by. */
function essence(object: object): string {
  const { metadata = {}, ...content } = object as { metadata?: object };
  const kept = Object.entries(metadata).filter(([key]) => !bookkeeping.has(key));
  const parts = Object.entries(content).filter(([key]) => key !== 'status');
  return JSON.stringify(sorted([Object.fromEntries(parts), Object.fromEntries(kept)]));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}

function resourceOf(kind: string): Resource {
  const found = resources[kind];
  if (found === undefined) throw new TypeError(`a pool has no ${kind}`);
  return found;
}

/** `conflict with "kubectl" using apps/v1: .spec.replicas`, and the form for several. */
const conflict = /conflicts? with "([^"]+)"[^:]*:\s*([^]*)/;

function sentence({ kind, metadata }: PoolObject, error: unknown, { namespace }: ApplyOptions): string {
  if (isKubernetesError(error, 'kubernetes-namespace'))
    return `there is no namespace "${namespace}" that takes objects: ${error.message}; make it (kubectl create namespace ${namespace}), or name another with --namespace`;
  const what = `${kind} ${metadata.name}`;
  const text = messageOf(error).replaceAll(/(?<!\s)\s*\n\s*/g, ' ');
  if (!isKubernetesError(error, 'kubernetes-conflict')) return `${what}: ${text}`;
  const [, manager = 'another program', fields = text] = conflict.exec(text) ?? [];
  return `${what}: ${manager} set ${fields.replace(/^- /, '')} to another value: leave it to that program, or take it with --force-conflicts`;
}

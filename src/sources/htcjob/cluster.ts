import type { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { isKubernetesError, KubernetesError } from '../../clients/kubernetes/errors.ts';
import { type KubernetesObject, presentIn } from '../../clients/kubernetes/objects.ts';
import { objectPath } from '../../clients/kubernetes/paths.ts';
import { ThresherError } from '../../worker/errors.ts';
import {
  apiVersion,
  fieldManager,
  finalizer,
  type HtcJob,
  type HtcJobMeta,
  htcJobKind,
  htcJobs,
  type HtcJobStatus,
  type SecretData,
  type SecretReference,
  writtenStatus,
} from '../../clients/htcjob/resource.ts';
import type { FollowedMeta } from './followed.ts';

const secrets = { group: '', version: 'v1', resource: 'secrets' };

/** HTCJobs that are read at the same time. */
export const readsAtOnce = 16;
/** Missing Secrets that are remembered. */
const mostMissing = 10_000;

export type Meta = Pick<
  FollowedMeta,
  'namespace' | 'name' | 'uid' | 'resourceVersion' | 'finalizers' | 'hasMoreFinalizers'
>;

/** The requests of the operator about one resource. Each change is of the version that was seen, or fails with `kubernetes-conflict`. */
export class HtcJobCluster {
  readonly #client: Pick<KubernetesClient, 'get' | 'patch' | 'delete' | 'clockOffset'>;
  /** Secrets that were not there, by `NAMESPACE/NAME`: the others are not read before these have come. */
  readonly #missing = new Set<string>();

  constructor(client: Pick<KubernetesClient, 'get' | 'patch' | 'delete' | 'clockOffset'>) {
    this.#client = client;
  }

  /**
   * ms UTC, of which each wait counts that ends or deletes something: by the server's clock where that is behind ours, so that a clock of ours
   * that runs ahead ends nothing. A clock of ours that is behind makes such a wait longer alone. All times of a status are by it, too.
   * @param ours the time by our clock
   */
  now(ours: number): number {
    return ours + Math.min(0, this.#client.clockOffset);
  }

  /** @returns undefined where there is none of this uid any more. */
  async read(
    { namespace, name, uid }: Pick<Meta, 'namespace' | 'name' | 'uid'>,
    signal: AbortSignal,
  ): Promise<HtcJob | undefined> {
    const found = await unlessGone(this.#client.get(objectPath(htcJobs, namespace, name), { signal }));
    return found?.metadata?.uid === uid ? (found as HtcJob) : undefined;
  }

  /**
   * @returns the new version; undefined where it is gone
   * @throws KubernetesError also where the answer does not show that it was done: nothing asks again whether the finalizer is as it was left
   */
  async setFinalizer(meta: Meta, isThere: boolean, signal: AbortSignal): Promise<string | undefined> {
    const { namespace, name, uid, resourceVersion } = meta;
    const finalizers = meta.hasMoreFinalizers ? await this.#finalizersOf(meta, signal) : meta.finalizers;
    if (finalizers === undefined && meta.hasMoreFinalizers) return undefined;
    const others = (finalizers ?? []).filter((one) => one !== finalizer);
    const metadata = { uid, resourceVersion, finalizers: isThere ? [...others, finalizer] : others };
    const options = { kind: 'merge', fieldManager, metadataOnly: true, signal } as const;
    const path = objectPath(htcJobs, namespace, name);
    const changed = await unlessGone(this.#client.patch(path, { metadata }, options));
    if (changed !== undefined) requireFinalizer(changed, meta, isThere);
    return versionOf(changed);
  }

  /** All of them, as they are now: a change of the version that was seen fails where they are others. Undefined where the HTCJob is gone. */
  async #finalizersOf(meta: Meta, signal: AbortSignal): Promise<readonly string[] | undefined> {
    const found = await this.read(meta, signal);
    return found && presentIn(found.metadata.finalizers);
  }

  /** Server-side apply: fields of other writers stay, and those of ours that another writer took are taken back. */
  async applyStatus(meta: Meta, status: HtcJobStatus, signal: AbortSignal): Promise<string | undefined> {
    const { namespace, name, uid, resourceVersion } = meta;
    const object = {
      apiVersion,
      kind: htcJobKind,
      metadata: { name, namespace, uid, resourceVersion },
      status: writtenStatus(status),
    };
    const options = { kind: 'apply', fieldManager, force: true, metadataOnly: true, signal } as const;
    const path = objectPath(htcJobs, namespace, name, 'status');
    return versionOf(await unlessGone(this.#client.patch(path, object, options)));
  }

  async delete(meta: Meta, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid, resourceVersion } = meta;
    const options = { uid, resourceVersion, propagationPolicy: 'Background', signal } as const;
    await unlessGone(this.#client.delete(objectPath(htcJobs, namespace, name), options));
  }

  /**
   * The contents of the Secrets that a resource names, by Secret.
   * @throws ThresherError `htcjob-secret` where one or a key of it is missing or must not be read, and those of the server
   */
  async secretsOf(
    namespace: string,
    references: readonly SecretReference[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, SecretData>> {
    const found = new Map<string, SecretData>();
    const isMissing = ({ name }: SecretReference) => this.#missing.has(`${namespace}/${name}`);
    const sorted = references.toSorted((one, other) => Number(isMissing(other)) - Number(isMissing(one)));
    for (const reference of sorted)
      found.set(reference.name, await this.#secret(namespace, reference, signal));
    return new Map(references.flatMap(({ name }) => [[name, found.get(name) ?? {}] as const]));
  }

  async #secret(
    namespace: string,
    { name, keys, optional = false }: SecretReference,
    signal: AbortSignal,
  ): Promise<SecretData> {
    const path = objectPath(secrets, namespace, name);
    const secret = (await unlessGone(this.#client.get(path, { signal })).catch((error: unknown) => {
      if (!isKubernetesError(error, 'kubernetes-forbidden')) throw error;
      const message = `Secret ${name} of namespace ${namespace} may not be read: ${error.message}`;
      throw new ThresherError('htcjob-secret', message, {}, { cause: error });
    })) as (KubernetesObject & { readonly data?: SecretData | null }) | undefined;
    const key = `${namespace}/${name}`;
    if (this.#missing.size >= mostMissing) this.#missing.clear();
    if (secret === undefined) this.#missing.add(key);
    else this.#missing.delete(key);
    if (secret === undefined && !optional)
      throw new ThresherError('htcjob-secret', `there is no Secret ${name} in namespace ${namespace}`);
    const data = secret?.data ?? {};
    const missing = keys?.find((key) => !Object.hasOwn(data, key));
    if (missing !== undefined && !optional)
      throw new ThresherError(
        'htcjob-secret',
        `Secret ${name} of namespace ${namespace} has no key ${missing}`,
      );
    const isWanted = (key: string) => keys === undefined || keys.includes(key);
    return Object.fromEntries(Object.entries(data).filter(([key]) => isWanted(key)));
  }
}

async function unlessGone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isKubernetesError(error, 'kubernetes-not-found')) return undefined;
    throw error;
  }
}

/** @throws KubernetesError where an answer is not of this resource, or has the finalizer where it is not to be there, or the other way round */
function requireFinalizer(
  { metadata }: { readonly metadata?: Partial<HtcJobMeta> },
  { namespace, name, uid }: Meta,
  isThere: boolean,
): void {
  const what = `the answer to a change of the finalizer of HTCJob ${namespace}/${name}`;
  if (metadata?.uid !== uid || metadata.resourceVersion === undefined)
    throw new KubernetesError({
      code: 'kubernetes-no-api',
      message: `${what} is none of this HTCJob`,
      maybeDone: true,
    });
  if (presentIn(metadata.finalizers).includes(finalizer) === isThere) return;
  const how = isThere ? 'does not have it' : 'still has it';
  throw new KubernetesError({
    code: 'kubernetes-admission',
    message: `${what} ${how}: a webhook of the cluster may undo the change`,
    maybeDone: true,
  });
}

function versionOf(object: KubernetesObject | undefined): string | undefined {
  return object?.metadata?.resourceVersion;
}

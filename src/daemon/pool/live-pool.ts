import type { KubernetesClient } from '../../clients/kubernetes/client.ts';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { type ApplyOptions, liveObject } from './apply.ts';
import type { PodShape, PoolObject } from './pool-objects.ts';

type Place = Pick<ApplyOptions, 'namespace' | 'signal'>;

/** Number of fixed workers that the cluster has now: whoever scaled them last decides. Undefined where there is no such Deployment. */
export async function fixedWorkers(
  client: KubernetesClient,
  name: string,
  place: Place,
): Promise<string | undefined> {
  const found = await liveObject(client, { kind: 'Deployment', name: `${name}-worker` }, place);
  const { replicas } = (found?.spec ?? {}) as { readonly replicas?: number };
  return replicas?.toString();
}

/** Secrets that Pods of the objects need and that are not there. A user without the right to look is told nothing. */
export async function missingSecrets(
  client: KubernetesClient,
  objects: readonly PoolObject[],
  place: Place,
): Promise<readonly string[]> {
  const needed = new Set(objects.flatMap((object) => secretsOf(object)));
  const missing: string[] = [];
  for (const name of needed) {
    try {
      if ((await liveObject(client, { kind: 'Secret', name }, place)) === undefined) missing.push(name);
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-forbidden')) throw error;
    }
  }
  return missing;
}

function secretsOf({ spec }: PoolObject): string[] {
  const { template } = (spec ?? {}) as { readonly template?: { readonly spec: PodShape } };
  return (template?.spec.volumes ?? []).flatMap(({ secret }) => {
    const { secretName, optional } = (secret ?? {}) as { secretName?: string; optional?: boolean };
    return secretName === undefined || optional === true ? [] : [secretName];
  });
}

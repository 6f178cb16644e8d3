import type { KubeClient, KubeObject } from './kubernetes.ts';

/** Paths of resources in the API, by kind. */
const resources: Readonly<Record<string, string>> = {
  ConfigMap: 'api/v1/configmaps',
  Deployment: 'apis/apps/v1/deployments',
  NetworkPolicy: 'apis/networking.k8s.io/v1/networkpolicies',
  PersistentVolumeClaim: 'api/v1/persistentvolumeclaims',
  PodDisruptionBudget: 'apis/policy/v1/poddisruptionbudgets',
  Role: 'apis/rbac.authorization.k8s.io/v1/roles',
  RoleBinding: 'apis/rbac.authorization.k8s.io/v1/rolebindings',
  Secret: 'api/v1/secrets',
  Service: 'api/v1/services',
  ServiceAccount: 'api/v1/serviceaccounts',
  StatefulSet: 'apis/apps/v1/statefulsets',
};

export function objectPath(kind: string, namespace: string, name: string): string {
  const path = resources[kind];
  if (path === undefined) throw new Error(`tests know no path of the kind ${kind}`);
  const at = path.lastIndexOf('/');
  return `/${path.slice(0, at)}/namespaces/${namespace}${path.slice(at)}/${name}`;
}

/** As `kubectl apply --server-side` does, in this namespace. */
export async function apply(client: KubeClient, object: KubeObject, namespace: string): Promise<void> {
  const path = objectPath(object.kind ?? '', namespace, object.metadata.name);
  await client.request('PATCH', `${path}?fieldManager=test`, object, {
    'content-type': 'application/apply-patch+yaml',
  });
}

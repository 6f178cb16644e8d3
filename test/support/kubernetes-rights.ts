import type { Namespace } from './kubernetes.ts';

/** What every queue needs. */
export const workerRights = [
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch', 'delete'] },
] as const;

export const rbac = (space: Namespace, resource: string, name = '') =>
  `/apis/rbac.authorization.k8s.io/v1/namespaces/${space.name}/${resource}/${name}`.replace(/\/$/, '');

/** A service account `thresher` that may do this in a namespace. */
export async function account(space: Namespace, rules: readonly object[] = workerRights): Promise<void> {
  const { client } = space;
  const name = 'thresher';
  await client.create(space.core('serviceaccounts'), { metadata: { name } });
  await client.create(rbac(space, 'roles'), { metadata: { name }, rules });
  await client.create(rbac(space, 'rolebindings'), {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: space.name }],
  });
}

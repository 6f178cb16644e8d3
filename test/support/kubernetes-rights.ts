import type { Namespace } from './kubernetes.ts';
import { until } from './until.ts';

/** What every queue needs. */
export const workerRights = [
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch', 'delete'] },
] as const;

export const rbac = (space: Namespace, resource: string, name = '') =>
  `/apis/rbac.authorization.k8s.io/v1/namespaces/${space.name}/${resource}/${name}`.replace(/\/$/, '');

const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

/** A service account `thresher` that may do this in a namespace, as its API server knows by then. */
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
  await until('the API server has heard of its rights', async () => {
    for (const rule of rules) if (!(await isAllowed(space, name, rule as Rule))) return false;
    return true;
  });
}

interface Answer {
  readonly status?: { readonly allowed?: boolean };
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

async function isAllowed(
  space: Namespace,
  account: string,
  { apiGroups: [group], resources: [path = ''], resourceNames: [object] = [], verbs: [verb] }: Rule,
): Promise<boolean> {
  const [resource, subresource] = path.split('/');
  const resourceAttributes = {
    namespace: space.name,
    group,
    resource,
    verb,
    ...(subresource !== undefined && { subresource }),
    ...(object !== undefined && { name: object }),
  };
  const spec = { user: `system:serviceaccount:${space.name}:${account}`, resourceAttributes };
  const answer = await space.client.request<Answer>('POST', reviews, { spec });
  return answer.status?.allowed === true;
}

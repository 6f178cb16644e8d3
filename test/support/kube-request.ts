/** What a request means to an API server: enough to choose it by a rule, and to count it. */
export interface KubeRequest {
  readonly verb:
    'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection' | 'other';
  /** `jobs`, `pods/log`; empty for paths outside the resources. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly method: string;
  readonly url: string;
}

/** @see https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb */
export function readKubeRequest(method: string, url: string): KubeRequest {
  const { pathname, searchParams } = new URL(url, 'http://proxy');
  const parts = pathname.split('/').filter((part) => part !== '');
  const [root = ''] = parts;
  let rest = root === 'api' ? parts.slice(2) : root === 'apis' ? parts.slice(3) : [];
  let namespace = '';
  // A namespace itself is a resource too.
  if (rest[0] === 'namespaces' && rest.length > 2 && rest[2] !== 'status' && rest[2] !== 'finalize') {
    namespace = rest[1] ?? '';
    rest = rest.slice(2);
  }
  const [kind = '', name = '', ...sub] = rest.map(decodeURIComponent);
  const resource = [kind, ...sub].join('/');
  const watch = ['1', 'true'].includes(searchParams.get('watch') ?? '');
  return { verb: verbOf(method, kind, name, watch), resource, namespace, name, method, url };
}

function verbOf(method: string, kind: string, name: string, watch: boolean): KubeRequest['verb'] {
  if (kind === '') return 'other';
  switch (method) {
    case 'GET':
      return watch ? 'watch' : name === '' ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name === '' ? 'deletecollection' : 'delete';
    default:
      return 'other';
  }
}

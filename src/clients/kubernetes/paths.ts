/** The path of objects of a kind: `{ group: 'batch', version: 'v1', resource: 'jobs' }`; the core group is ''. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  /** Plural, in small letters. */
  readonly resource: string;
}

export const jobs: Resource = { group: 'batch', version: 'v1', resource: 'jobs' };
export const pods: Resource = { group: '', version: 'v1', resource: 'pods' };

/**
 * "/apis/batch/v1/namespaces/NAMESPACE/jobs". Without a namespace all of them.
 * @throws TypeError for an empty or unfit part: it would be another path, such as that of all objects.
 */
export function collectionPath({ group, version, resource }: Resource, namespace?: string): string {
  const root = group === '' ? `/api/${segment(version)}` : `/apis/${segment(group)}/${segment(version)}`;
  const within = namespace === undefined ? '' : `/namespaces/${segment(namespace)}`;
  return `${root}${within}/${segment(resource)}`;
}

/** "/apis/batch/v1/namespaces/NAMESPACE/jobs/NAME[/SUBRESOURCE]". @throws TypeError as `collectionPath` does. */
export function objectPath(kind: Resource, namespace: string, name: string, subresource?: string): string {
  const path = `${collectionPath(kind, namespace)}/${segment(name)}`;
  return subresource === undefined ? path : `${path}/${segment(subresource)}`;
}

function segment(text: string): string {
  if (!/^[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?$/.test(text)) {
    throw new TypeError(`"${text}" cannot be a part of a path of the Kubernetes API`);
  }
  return text;
}

/**
 * Whether a path is that of one object, and not of a collection.
 * Source: the API's `/api/VERSION` or `/apis/GROUP/VERSION`, then `[namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]]`.
 */
export function isObjectPath(path: string): boolean {
  const parts = path.split('/').slice(1);
  const root = parts[0] === 'api' ? 2 : 3;
  const rest = parts.slice(root);
  if (parts.includes('') || !['api', 'apis'].includes(parts[0] ?? '')) return false;
  // "namespaces/NAMESPACE" alone is an object itself.
  return rest[0] === 'namespaces' && rest.length > 2 ? rest.length >= 4 : rest.length >= 2;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Path and query as they go over the wire.
 * @throws TypeError for a path that has a query of its own, or signs that would end the request line.
 */
export function withQuery(path: string, query: Query = {}): string {
  if (!/^\/[A-Za-z0-9._:/-]+$/.test(path) || path.endsWith('/') || /\/\.{0,2}\//.test(path)) {
    throw new TypeError(`"${path}" is not a path of the Kubernetes API, such as /api/v1/namespaces/a/pods`);
  }
  const set = Object.entries(query).filter(([, value]) => value !== undefined);
  if (set.length === 0) return path;
  return `${path}?${set.map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join('&')}`;
}

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Container, Secret } from '../../../clients/interlink/wire.ts';
import { hasMoreValues } from '../../../util/json.ts';
import { fieldsOf, isText } from './lines.ts';
import { problem, shown, type PodProblem } from './problem.ts';
import { isBelow } from './volumes.ts';

/** How the job comes to the image of a container. */
export type PodImage =
  | { readonly kind: 'host' }
  /** A file or a directory of the machine. */
  | { readonly kind: 'path'; readonly path: string }
  /** `cache`: the file that keeps it for further jobs. */
  | { readonly kind: 'remote'; readonly uri: string; readonly cache?: string; readonly login?: Login };

export interface Login {
  readonly username: string;
  readonly password: string;
}

export interface ImageRules {
  /** The image "host" runs commands on the machine, outside of any container. */
  readonly host: boolean;
  /** Directories of the machine with images. */
  readonly imagePaths: readonly string[];
  /** A directory that the machines of the jobs share. */
  readonly imageCache?: string;
}

/** Characters: a longer one would be copied for each container. */
const longestImage = 4096;

const schemes = ['docker', 'oras', 'library', 'shub', 'https', 'http'];

export function imageOf(
  { image = '', imagePullPolicy }: Container,
  at: string,
  { root, logins }: { readonly root: string; readonly logins: ReadonlyMap<string, Login> },
  rules: ImageRules,
): PodImage | PodProblem {
  if (image === '') return problem(at, 'the container has no image');
  if (image === 'host')
    return rules.host
      ? { kind: 'host' }
      : problem(at, 'the image "host" would run on the machine itself, which the operator does not allow');
  const full = image.startsWith('/') || image.includes('://') ? image : `${root}${image}`;
  if (full.length > longestImage || !isText(full) || /[\s,]/.test(full) || image.startsWith('-'))
    return problem(at, `${shown(full)} is no name of an image`);
  if (full.startsWith('/'))
    return isBelow(full, rules.imagePaths)
      ? { kind: 'path', path: full }
      : problem(
          at,
          `the image ${shown(full)} is a path of the machine; images may be below ${rules.imagePaths.join(', ') || 'none'}`,
        );
  const [scheme = ''] = full.split('://');
  if (!schemes.includes(scheme))
    return problem(
      at,
      `the image ${shown(full)} has the scheme ${shown(scheme)}; it must be one of ${schemes.join(', ')}`,
    );
  const login = logins.get(registryOf(full));
  // A private image must not reach other Pods, and a tag that is pulled always must not come from a file.
  const shared = login === undefined && imagePullPolicy !== 'Always' && rules.imageCache !== undefined;
  const key = createHash('sha256').update(full).digest('hex');
  return {
    kind: 'remote',
    uri: full,
    ...(shared ? { cache: join(rules.imageCache ?? '', `${key}.sif`) } : {}),
    ...(login === undefined ? {} : { login }),
  };
}

/** Lines `image INDEX KIND ...`: an image that comes again is fetched once. */
export function imageLines(images: readonly PodImage[]): readonly string[] {
  const known = new Map<string, number>();
  return images.map((image, index) => {
    // Its login is the one of its registry.
    const key = JSON.stringify('login' in image ? { ...image, login: true } : image);
    const first = known.get(key) ?? index;
    known.set(key, first);
    return imageLine(image, index, first);
  });
}

function imageLine(image: PodImage, index: number, first: number): string {
  if (image.kind === 'remote' && first < index) return fieldsOf('image', index, 'same', first, '-');
  switch (image.kind) {
    case 'host':
      return fieldsOf('image', index, 'host', '-', '-');
    case 'path':
      return fieldsOf('image', index, 'path', image.path, '-');
    case 'remote':
      return fieldsOf('image', index, 'remote', image.uri, image.cache ?? '-');
  }
}

/** `docker://busybox` is of docker.io, as `docker://localhost:5000/x` is of localhost:5000. */
function registryOf(uri: string): string {
  const [first = '', ...rest] = uri.slice(uri.indexOf('://') + 3).split('/');
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}

/** Logins by registry, of Secrets of the type kubernetes.io/dockerconfigjson. */
export function loginsOf(secrets: readonly Secret[]): ReadonlyMap<string, Login> {
  const logins = new Map<string, Login>();
  for (const { data } of secrets) {
    const text = data?.['.dockerconfigjson'];
    if (text === undefined) continue;
    for (const [server, login] of authsOf(Buffer.from(text, 'base64').toString())) {
      const host = server.replace(/^https?:\/\//, '').split('/')[0] ?? '';
      logins.set(host === 'index.docker.io' ? 'docker.io' : host, login);
    }
  }
  return logins;
}

/** A login has three at most; a cluster's Secret has the logins of a few registries. */
const mostValues = 10_000;

function authsOf(json: string): readonly (readonly [string, Login])[] {
  let config: unknown;
  if (hasMoreValues(json, mostValues)) return [];
  try {
    config = JSON.parse(json);
  } catch {
    return [];
  }
  const auths = record(record(config)['auths']);
  return Object.entries(auths).flatMap(([server, written]) => {
    const { auth, username, password } = record(written);
    const pair = typeof auth === 'string' ? Buffer.from(auth, 'base64').toString() : '';
    const split = pair.indexOf(':');
    if (typeof username === 'string' && typeof password === 'string')
      return [[server, { username, password }]];
    return split < 0 ? [] : [[server, { username: pair.slice(0, split), password: pair.slice(split + 1) }]];
  });
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

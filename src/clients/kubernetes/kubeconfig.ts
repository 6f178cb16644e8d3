import { dirname, resolve } from 'node:path';
import type { Static, TSchema } from 'typebox';
import { type Located, toPointer } from '../../util/located.ts';
import { readYamlFile } from '../../util/located-file.ts';
import { nearest } from '../../util/nearest.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { check } from '../../util/schema.ts';
import { hidden } from '../../util/secrets.ts';
import Type from '../../util/type.ts';
import { withoutEnd } from '../../util/without-end.ts';
import { ThresherError } from '../../worker/errors.ts';

const text = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const name = Type.String({ minLength: 1 });

const Cluster = Type.Object({
  server: Type.String({ minLength: 1 }),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': Type.Optional(Type.Boolean()),
  'tls-server-name': text,
  'proxy-url': text,
});

const ExecConfig = Type.Object({
  apiVersion: Type.Optional(Type.String()),
  command: Type.String({ minLength: 1 }),
  args: Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()])),
  env: Type.Optional(
    Type.Union([Type.Array(Type.Object({ name: Type.String(), value: Type.String() })), Type.Null()]),
  ),
  installHint: text,
  interactiveMode: text,
  provideClusterInfo: Type.Optional(Type.Boolean()),
});
export type ExecConfig = Static<typeof ExecConfig>;

const User = Type.Object({
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  as: text,
  'as-uid': text,
  'as-groups': Type.Optional(Type.Array(Type.String())),
  exec: Type.Optional(ExecConfig),
  'auth-provider': Type.Optional(Type.Object({ name: Type.String() })),
});
type User = Static<typeof User>;

const list = <T extends TSchema>(of: T) => Type.Optional(Type.Union([Type.Array(of), Type.Null()]));

/** Source: `client-go/tools/clientcmd/api/v1`. Keys beyond these belong to other programs. */
const Kubeconfig = Type.Object({
  'current-context': text,
  contexts: list(Type.Object({ name, context: Type.Object({ cluster: name, user: text, namespace: text }) })),
  clusters: list(Type.Object({ name, cluster: Type.Unknown() })),
  users: list(Type.Object({ name, user: Type.Unknown() })),
});

/** A file, or what stands in the kubeconfig in its stead: base64. */
export type Material = { readonly file: string } | { readonly data: string };

/**
 * The login. If there are several ways the first counts, in the order of client-go: certificate and one of the others.
 */
export interface UserAccess {
  readonly name: string;
  readonly certificate?: Material;
  readonly key?: Material;
  readonly tokenFile?: string;
  readonly token?: string;
  readonly basic?: { readonly username: string; readonly password: string };
  readonly exec?: ExecConfig;
  /** `oidc`, `gcp`, `azure`: ways of their own that kubectl no longer has. */
  readonly authProvider?: string;
  readonly impersonate?: {
    readonly user: string;
    readonly uid?: string;
    readonly groups: string[];
  };
}

/** The facts that a kubeconfig has about one context. Paths are absolute. */
export interface ClusterAccess {
  /** The file it comes from; the service account's directory within a Pod. */
  readonly source: string;
  readonly context: string;
  /** Namespace of the context; undefined if it has none. */
  readonly namespace?: string;
  readonly server: string;
  readonly ca?: Material;
  readonly insecure: boolean;
  readonly serverName?: string;
  readonly proxyUrl?: string;
  readonly user: UserAccess;
}

/**
 * Reads one context of a kubeconfig file. client-node's reader is not used: with what it imports it costs 60 MB, it
 * does not know `tokenFile`, and it does not say where a mistake is.
 * @param context default: the file's `current-context`.
 * @throws ThresherError `kubeconfig-missing` or `kubeconfig-wrong`, with file and line.
 */
export async function readKubeconfig(
  files: OperatorFiles,
  file: string,
  context?: string,
): Promise<ClusterAccess> {
  const located = await readYamlFile(files, file, 'kubeconfig');
  const [broken] = located.problems;
  if (broken?.code === 'file-unreadable') {
    throw new ThresherError('kubeconfig-missing', `kubeconfig ${file}: ${broken.message}`, { file });
  }
  if (broken !== undefined) throw wrong(located, `line ${broken.line}`, broken.message);
  const config = checked(located, Kubeconfig, located.value, '');
  const entries = config.contexts ?? [];
  const wanted = context ?? config['current-context'] ?? '';
  if (wanted === '') {
    const names = entries.map((entry) => `"${entry.name}"`).join(', ');
    const among = names === '' ? 'and there is none' : `or name one: ${names}`;
    throw wrong(located, 'current-context', `no context is chosen; set current-context, ${among}`);
  }
  const found = pick(located, 'contexts', entries, wanted, 'context');
  const { cluster: clusterName, user: userName, namespace } = found.entry.context;
  const cluster = pick(located, 'clusters', config.clusters ?? [], clusterName, 'cluster', found.at);
  const access = clusterAccess(located, cluster.entry.cluster, `${cluster.at}/cluster`);
  return {
    source: file,
    context: wanted,
    ...(namespace && { namespace }),
    ...access,
    user: userName
      ? userOf(located, pick(located, 'users', config.users ?? [], userName, 'user', found.at))
      : { name: '' },
  };
}

interface Entry {
  readonly name: string;
}

/** The entry of that name, with its place. `from` is the place that names it. */
function pick<T extends Entry>(
  located: Located,
  key: string,
  entries: readonly T[],
  wanted: string,
  what: string,
  from?: string,
): { readonly entry: T; readonly at: string } {
  const index = entries.findIndex((entry) => entry.name === wanted);
  const entry = entries[index];
  if (entry !== undefined) return { entry, at: toPointer([key, index]) };
  const names = entries.map((one) => one.name);
  const meant = nearest(wanted, names);
  const help =
    meant === undefined
      ? `it has ${names.length === 0 ? 'none' : names.map((one) => `"${one}"`).join(', ')}`
      : `did you mean "${meant}"?`;
  const place = from === undefined ? `/${key}` : `${from}/context/${what}`;
  throw wrongAt(located, place, `there is no ${what} "${wanted}"; ${help}`);
}

function clusterAccess(
  located: Located,
  value: unknown,
  at: string,
): Omit<ClusterAccess, 'source' | 'context' | 'namespace' | 'user'> {
  const cluster = checked(located, Cluster, value ?? {}, at);
  // kubectl takes a host alone, as `10.0.0.1:6443`.
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(cluster.server)
    ? cluster.server
    : `https://${cluster.server}`;
  const server = checkedUrl(located, address, `${at}/server`, ['http:', 'https:']);
  if (server.search !== '' || server.hash !== '' || server.username !== '') {
    throw wrongAt(
      located,
      `${at}/server`,
      'server must be an address such as https://host:6443, without more',
    );
  }
  const ca = material(
    located,
    cluster['certificate-authority'],
    cluster['certificate-authority-data'],
    `${at}/certificate-authority-data`,
  );
  const insecure = cluster['insecure-skip-tls-verify'] === true;
  if (insecure && ca !== undefined) {
    const message = 'insecure-skip-tls-verify and a certificate-authority exclude each other; remove one';
    throw wrongAt(located, `${at}/insecure-skip-tls-verify`, message);
  }
  const proxy = cluster['proxy-url'];
  if (proxy) checkedUrl(located, proxy, `${at}/proxy-url`, ['http:', 'https:', 'socks5:']);
  return {
    server: withoutEnd(server.href, '/'),
    insecure,
    ...(ca && { ca }),
    ...(cluster['tls-server-name'] && { serverName: cluster['tls-server-name'] }),
    ...(proxy && { proxyUrl: proxy }),
  };
}

function userOf(
  located: Located,
  { entry, at }: { entry: Entry & { user: unknown }; at: string },
): UserAccess {
  const place = `${at}/user`;
  const user = checked(located, User, entry.user ?? {}, place);
  const certificate = material(
    located,
    user['client-certificate'],
    user['client-certificate-data'],
    `${place}/client-certificate-data`,
  );
  const key = material(located, user['client-key'], user['client-key-data'], `${place}/client-key-data`);
  if ((certificate === undefined) !== (key === undefined)) {
    const [has, lacks] = certificate
      ? ['client-certificate', 'client-key']
      : ['client-key', 'client-certificate'];
    throw wrongAt(located, place, `user "${entry.name}" has a ${has} but no ${lacks}`);
  }
  if (user.exec?.interactiveMode === 'Always') {
    const message = `user "${entry.name}" has an exec plugin that asks at a terminal (interactiveMode Always), and a daemon has none`;
    throw wrongAt(located, `${place}/exec/interactiveMode`, message);
  }
  return {
    name: entry.name,
    ...(certificate && { certificate }),
    ...(key && { key }),
    ...secretOf(user, dirname(located.file)),
    ...(user.exec && { exec: user.exec }),
    ...(user['auth-provider'] && { authProvider: user['auth-provider'].name }),
    ...(user.as && {
      impersonate: {
        user: user.as,
        groups: user['as-groups'] ?? [],
        ...(user['as-uid'] && { uid: user['as-uid'] }),
      },
    }),
  };
}

function secretOf(user: User, directory: string): Pick<UserAccess, 'token' | 'tokenFile' | 'basic'> {
  // The file wins, as in client-go: a token beside it is what the file held once.
  if (user.tokenFile) return { tokenFile: resolve(directory, user.tokenFile) };
  if (user.token) return { token: user.token };
  if (user.username) return { basic: { username: user.username, password: user.password ?? '' } };
  return {};
}

function material(
  located: Located,
  file: string | null | undefined,
  data: string | null | undefined,
  at: string,
): Material | undefined {
  if (!data) return file ? { file: resolve(dirname(located.file), file) } : undefined;
  if (!/^[A-Za-z0-9+/\s]+(?:=+\s*)?$/.test(data)) {
    throw wrongAt(
      located,
      at,
      `${at.split('/').at(-1) ?? ''} is not base64; a path goes into the key without "-data"`,
    );
  }
  return { data };
}

function checkedUrl(located: Located, value: string, at: string, protocols: readonly string[]): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url !== undefined && protocols.includes(url.protocol) && url.hostname !== '') return url;
  const wanted = protocols.map((protocol) => `${protocol}//host:port`).join(' or ');
  // What is no URL may still have a password: "user:password@host:3128".
  const shown = value.replace(/^.*@/s, `${hidden}@`);
  throw wrongAt(located, at, `${at.split('/').at(-1) ?? ''} is "${shown}"; it must be ${wanted}`);
}

/** To kubectl a null is as what is not written. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([, one]) => one !== null);
  return Object.fromEntries(entries.map(([key, one]) => [key, withoutNulls(one)]));
}

function checked<T extends TSchema>(located: Located, schema: T, value: unknown, at: string): Static<T> {
  const result = check(schema, withoutNulls(value));
  if (result.ok) return result.value;
  const [first] = result.problems;
  throw wrongAt(located, `${at}${first?.pointer ?? ''}`, first?.message ?? 'not a kubeconfig');
}

function wrongAt(located: Located, pointer: string, message: string): ThresherError {
  return wrong(located, `line ${located.lineOf(pointer)}, ${pointer === '' ? '/' : pointer}`, message);
}

function wrong(located: Located, place: string, message: string): ThresherError {
  const { file } = located;
  return new ThresherError('kubeconfig-wrong', `kubeconfig ${file}, ${place}: ${message}`, { file });
}

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { parse } from 'yaml';
import { readKubeconfig } from '../../src/clients/kubernetes/kubeconfig.ts';
import type { KubernetesClient } from '../../src/clients/kubernetes/client.ts';
import { isKubernetesError, type KubernetesError } from '../../src/clients/kubernetes/errors.ts';
import { collectionPath, jobs, objectPath, pods } from '../../src/clients/kubernetes/paths.ts';
import { Reflector } from '../../src/clients/kubernetes/reflector.ts';
import type { KubernetesObject } from '../../src/clients/kubernetes/objects.ts';
import { systemClock } from '../../src/util/clock.ts';
import { controlPlane } from '../support/kubernetes.ts';
import { makeClient, rejection, writeKubeconfig } from '../support/kubernetes-client.ts';
import { files } from '../support/operator-files.ts';
import { until } from '../support/until.ts';

const signal = new AbortController().signal;
const rbac = (resource: string) => ({ group: 'rbac.authorization.k8s.io', version: 'v1', resource });
const core = (resource: string) => ({ group: '', version: 'v1', resource });

async function failure(promise: Promise<unknown>): Promise<KubernetesError> {
  const error = await rejection(promise);
  if (isKubernetesError(error)) return error;
  throw error;
}

/** A Job that no controller starts. */
const job = (name: string, labels: Record<string, string> = {}) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name, labels },
  spec: {
    suspend: true,
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'pilot', image: 'pilot' }] } },
  },
});

/** A kubeconfig like the administrator's, but for these. */
function changed(admin: string, cluster: object, user?: object): string {
  const value = parse(readFileSync(admin, 'utf8')) as {
    clusters: { cluster: Record<string, unknown> }[];
    users: { user: Record<string, unknown> }[];
  };
  const [first] = value.clusters;
  const [who] = value.users;
  return writeKubeconfig({
    ...value,
    clusters: [{ ...first, cluster: { ...first?.cluster, ...cluster } }],
    users: [{ ...who, user: user ?? who?.user }],
  });
}

/** Stands between client and server, and can fall silent, lose answers, or cut everything off. */
class Line {
  silent = false;
  losesAnswers = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(target: URL) {
    this.#server = createServer((socket) => {
      const upstream = connect(Number(target.port), target.hostname);
      for (const [from, to] of [
        [socket, upstream],
        [upstream, socket],
      ] as const) {
        this.#sockets.add(from);
        from.on('data', (data) => {
          if (!this.silent && !(this.losesAnswers && from === upstream)) to.write(data);
        });
        from.on('close', () => {
          this.#sockets.delete(from);
          to.destroy();
        });
        from.on('error', () => undefined);
      }
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  stop(): void {
    this.cut();
    this.#server.close();
  }
}

describe('the Kubernetes client against a real API server', function () {
  this.timeout(900_000);
  const namespace = `client-${randomUUID().slice(0, 8)}`;
  const path = collectionPath(jobs, namespace);
  const at = (name: string) => objectPath(jobs, namespace, name);
  const opened: KubernetesClient[] = [];
  const open = (kubeconfig: string, options = {}) => {
    const client = makeClient(kubeconfig, options);
    opened.push(client);
    return client;
  };
  /** The administrator's kubeconfig. */
  let file: string;
  let client: KubernetesClient;

  before(async () => {
    file = (await controlPlane()).status.kubeconfig;
    client = open(file);
    await client.create(
      collectionPath(core('namespaces')),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
      { signal },
    );
  });

  after(async () => {
    await client.delete(`/api/v1/namespaces/${namespace}`, { signal });
    await Promise.all(opened.map((one) => one.close()));
  });

  it('creates, finds, changes and deletes a Job, and only that very one', async () => {
    const made = await client.create(path, job('life'), { signal });
    expect(made.metadata)
      .to.have.property('uid')
      .that.matches(/^[0-9a-f-]{36}$/);
    expect(await failure(client.create(path, job('life'), { signal }))).to.have.property(
      'code',
      'kubernetes-already-exists',
    );
    const found = await client.get(at('life'), { signal });
    expect(found.metadata?.uid).to.equal((made.metadata as KubernetesObject['metadata'])?.uid);
    const merged = await client.patch(
      at('life'),
      { metadata: { labels: { a: '1' } } },
      { signal, kind: 'merge' },
    );
    expect(merged.metadata?.labels).to.include({ a: '1' });
    const applied = await client.patch(
      at('life'),
      { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'life', labels: { b: '2' } } },
      { signal, kind: 'apply', fieldManager: 'thresher' },
    );
    expect(applied.metadata?.labels).to.include({ a: '1', b: '2' });
    const other = await failure(client.delete(at('life'), { signal, uid: randomUUID() }));
    expect(other).to.include({ code: 'kubernetes-conflict', maybeDone: false });
    await client.delete(at('life'), {
      signal,
      uid: found.metadata?.uid ?? '',
      propagationPolicy: 'Background',
    });
    expect(await failure(client.get(at('life'), { signal }))).to.have.property(
      'code',
      'kubernetes-not-found',
    );
    expect(await failure(client.delete(at('life'), { signal }))).to.have.property(
      'code',
      'kubernetes-not-found',
    );
  });

  it('knows what a create would be refused for, and makes nothing', async () => {
    const { object } = await client.dryRun(path, job('dry'), { signal });
    expect(object).to.have.nested.property('spec.suspend', true);
    expect(await failure(client.get(at('dry'), { signal }))).to.have.property('code', 'kubernetes-not-found');
    const misspelt = { ...job('dry'), spec: { ...job('dry').spec, templat: {} } };
    const strict = await failure(client.dryRun(path, misspelt, { signal }));
    expect(strict.code).to.equal('kubernetes-refused');
    expect(strict.message).to.contain('unknown field "spec.templat"');
    const invalid = await failure(client.create(path, { ...job('dry'), spec: { template: {} } }, { signal }));
    expect(invalid.code).to.equal('kubernetes-invalid');
    expect(invalid.message).to.contain('spec.template.spec.containers: Required value');
    expect(await failure(client.create(path, job('No Name'), { signal }))).to.have.property(
      'code',
      'kubernetes-invalid',
    );
  });

  it('tells a namespace or a kind that is not there from an object that is not there', async () => {
    const nowhere = collectionPath(jobs, 'no-such-namespace');
    expect(await failure(client.create(nowhere, job('a'), { signal }))).to.have.property(
      'code',
      'kubernetes-namespace',
    );
    const kind = { group: 'batch', version: 'v1', resource: 'pilots' };
    expect(await failure(client.get(objectPath(kind, namespace, 'a'), { signal }))).to.have.property(
      'code',
      'kubernetes-no-api',
    );
    expect(await failure(client.list(collectionPath(kind, namespace), { signal }, () => 1))).to.have.property(
      'code',
      'kubernetes-no-api',
    );
    const log = objectPath(pods, namespace, 'a', 'log');
    const read = async () => {
      for await (const text of client.logs(log, { signal })) return text;
      return undefined;
    };
    expect(await failure(read())).to.have.property('code', 'kubernetes-not-found');
  });

  it('lists in pages of one version', async () => {
    const names = Array.from({ length: 25 }, (_, n) => `page-${n}`);
    await Promise.all(names.map((name) => client.create(path, job(name, { in: 'pages' }), { signal })));
    const options = { signal, labelSelector: 'in=pages', limit: 10 };
    const { items, resourceVersion } = await client.list(path, options, ({ metadata }) => metadata?.name);
    expect(items).to.have.members(names);
    expect(resourceVersion).to.match(/^\d+$/);
  });

  it('names the right that is missing', async () => {
    const account = 'pilot';
    await client.create(
      collectionPath(core('serviceaccounts'), namespace),
      { metadata: { name: account } },
      { signal },
    );
    const token = await client.create(
      objectPath(core('serviceaccounts'), namespace, account, 'token'),
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} } as KubernetesObject,
      { signal },
    );
    const user = { token: (token as { status?: { token?: string } }).status?.token };
    const limited = open(changed(file, {}, user));
    const error = await failure(limited.create(path, job('a'), { signal }));
    expect(error).to.include({ code: 'kubernetes-forbidden', status: 403, maybeDone: false });
    const who = `system:serviceaccount:${namespace}:${account}`;
    expect(error.message).to.contain(
      `user "${who}" lacks the right to create jobs.batch in namespace "${namespace}"`,
    );
    await client.create(
      collectionPath(rbac('roles'), namespace),
      {
        metadata: { name: 'maker' },
        rules: [{ apiGroups: ['batch'], resources: ['jobs'], verbs: ['create'] }],
      } as KubernetesObject,
      { signal },
    );
    await client.create(
      collectionPath(rbac('rolebindings'), namespace),
      {
        metadata: { name: 'maker' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'maker' },
        subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
      } as KubernetesObject,
      { signal },
    );
    await until('it may create', () => limited.create(path, job('by-pilot'), { signal }).then(() => true));
    expect(await failure(limited.list(path, { signal }, () => 1)))
      .to.have.property('message')
      .that.contains('to list jobs.batch');
    const wrong = open(changed(file, {}, { token: 'wrong' }));
    expect(await failure(wrong.get(at('a'), { signal }))).to.have.property('code', 'kubernetes-unauthorized');
  });

  it('says that the quota is full', async () => {
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none' },
      spec: { hard: { secrets: '0' } },
    };
    await client.create(collectionPath(core('resourcequotas'), namespace), quota, { signal });
    const secrets = collectionPath(core('secrets'), namespace);
    const error = await until('the quota holds', async () => {
      const name = `s-${randomUUID().slice(0, 8)}`;
      return client.create(secrets, { metadata: { name } }, { signal }).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
    });
    expect(error).to.include({ code: 'kubernetes-quota', status: 403 });
  });

  it('follows what happens, through broken and half-open connections', async () => {
    const line = new Line(new URL((await readKubeconfig(files, file)).server));
    const server = await line.listen();
    const through = open(changed(file, { server }), { timeout: 2000 });
    const known = new Map<string, string | undefined>();
    let lists = 0;
    const nameOf = ({ metadata }: KubernetesObject) => metadata?.name ?? '';
    const reflector = new Reflector<KubernetesObject>({
      client: through,
      path,
      labelSelector: 'in=watch',
      record: ({ metadata }) => (metadata === undefined ? undefined : { metadata }),
      handlers: {
        replace: (all) => {
          lists++;
          known.clear();
          for (const one of all) known.set(nameOf(one), one.metadata?.labels?.['n']);
        },
        upsert: (one) => known.set(nameOf(one), one.metadata?.labels?.['n']),
        remove: (one) => known.delete(nameOf(one)),
      },
      clock: systemClock,
      random: () => 0.1,
      silence: 5000,
    });
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    const labels = { in: 'watch', n: '1' };
    try {
      await client.create(path, job('w1', labels), { signal });
      await until('w1 is seen', () => known.get('w1') === '1');
      await client.patch(at('w1'), { metadata: { labels: { n: '2' } } }, { signal, kind: 'merge' });
      await until('its change is seen', () => known.get('w1') === '2');

      line.cut();
      await client.create(path, job('w2', labels), { signal });
      await until('w2 is seen over a new connection', () => known.has('w2'));

      line.silent = true;
      await client.delete(at('w1'), { signal, propagationPolicy: 'Background' });
      await client.create(path, job('w3', labels), { signal });
      await until('the silence is noticed', () => reflector.state.trouble !== undefined);
      expect(known.has('w1'), 'nothing is known to be gone').to.equal(true);
      line.silent = false;
      line.cut();
      await until('all is seen again', () => !known.has('w1') && known.has('w3') && reflector.state.synced);
      expect([...known.keys()].sort()).to.deep.equal(['w2', 'w3']);
      expect(lists, 'no list was needed for that').to.equal(1);
    } finally {
      stop.abort();
      await running;
      line.stop();
    }
  });

  it('says that a create whose answer was lost may have been done', async () => {
    const line = new Line(new URL((await readKubeconfig(files, file)).server));
    const through = open(changed(file, { server: await line.listen() }), { timeout: 4000, connections: 1 });
    try {
      await through.get(`/api/v1/namespaces/${namespace}`, { signal });
      line.losesAnswers = true;
      const error = await failure(through.create(path, job('lost'), { signal }));
      expect(error).to.include({ code: 'kubernetes-unreachable', maybeDone: true });
      expect((await client.get(at('lost'), { signal })).metadata, 'it was').to.have.property('uid');
    } finally {
      line.stop();
    }
  });
});

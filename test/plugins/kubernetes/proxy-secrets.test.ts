import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import { KubernetesError } from '../../../src/clients/kubernetes/errors.ts';
import type { KubernetesObject } from '../../../src/clients/kubernetes/objects.ts';
import { inFiles } from '../../../src/daemon/source-memory.ts';
import { ClusterPin } from '../../../src/plugins/kubernetes/cluster-pin.ts';
import { K8sNamespace } from '../../../src/plugins/kubernetes/namespace.ts';
import { ProxySecrets } from '../../../src/plugins/kubernetes/proxy-secrets.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const { signal } = new AbortController();
const hour = 3_600_000;

describe('the Secret of a proxy that is swept while somebody wants it again', () => {
  let file: string;
  let clock: ManualClock;
  /** Names of the Secrets on the server. */
  let there: Set<string>;
  /** What the server is asked, in order. */
  let asked: string[];
  /** Held back before it is answered. */
  let held: Partial<Record<string, Promise<unknown>>>;
  let secrets: ProxySecrets;

  beforeEach(async () => {
    file = join(temporaryDirectory(), 'x509');
    writeFileSync(file, '-----BEGIN CERTIFICATE-----\n');
    clock = new ManualClock();
    there = new Set();
    asked = [];
    held = {};
    const say = async (what: string) => {
      asked.push(what);
      await held[what];
    };
    const client = {
      create: async (_path: string, { metadata }: KubernetesObject) => {
        await say('create');
        const { name = '' } = metadata ?? {};
        const taken = { code: 'kubernetes-already-exists', message: 'taken', maybeDone: false } as const;
        if (there.has(name)) throw new KubernetesError(taken);
        there.add(name);
      },
      list: async () => {
        await say('list');
        return { items: [...there].map((name) => ({ name, uid: `uid-of-${name}` })) };
      },
      // No Job has any of them.
      exists: async () => {
        await say('exists');
        return false;
      },
      delete: async (path: string) => {
        await say('delete');
        there.delete(path.split('/').at(-1) ?? '');
      },
    };
    const pin = new ClusterPin('test', { stateDir: '/nonexistent', memoryOf: inFiles('/nonexistent') });
    const cluster = { client: client as unknown as KubernetesClient, pin };
    const namespace = new K8sNamespace(cluster, 'grid', { factoryId: 'factory', clock });
    secrets = new ProxySecrets(namespace, { clock, files });
    await secrets.ensure('Q', file, signal);
    await clock.advance(2 * hour);
    asked = [];
  });

  const sweepHeldAt = (what: string) => {
    const release = Promise.withResolvers<undefined>();
    held[what] = release.promise;
    const over = secrets.sweep(signal);
    return { over, release };
  };

  it('is gone where nobody does', async () => {
    await secrets.sweep(signal);
    expect(there.size).to.equal(0);
  });

  it('stays where that is between the look for Jobs and the deletion', async () => {
    const { over, release } = sweepHeldAt('exists');
    await until('it is looked', () => asked.includes('exists'));
    await secrets.ensure('Q', file, signal);
    release.resolve(undefined);
    await over;
    expect(there.size).to.equal(1);
    expect(asked).to.deep.equal(['list', 'exists', 'create']);
  });

  it('is made again where its deletion is under way', async () => {
    const { over, release } = sweepHeldAt('delete');
    await until('it is being deleted', () => asked.includes('delete'));
    const content = await secrets.read(file);
    secrets.read = async () => content;
    const wanted = secrets.ensure('Q', file, signal);
    await clock.settle();
    release.resolve(undefined);
    await Promise.all([over, wanted]);
    expect(there.size).to.equal(1);
    expect(asked).to.deep.equal(['list', 'exists', 'delete', 'create']);
  });

  it('is wanted again without waiting for ever where its deletion fails', async () => {
    const { over, release } = sweepHeldAt('delete');
    const failed = over.catch((error: unknown) => error);
    await until('it is being deleted', () => asked.includes('delete'));
    const wanted = secrets.ensure('Q', file, signal);
    release.reject(new Error('broken'));
    expect(await failed).to.be.instanceOf(Error);
    await wanted;
    expect(there.size).to.equal(1);
  });
});

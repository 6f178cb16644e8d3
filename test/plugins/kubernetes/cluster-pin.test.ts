import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { Access } from '../../../src/clients/kubernetes/access.ts';
import { inFiles } from '../../../src/daemon/source-memory.ts';
import type { Context } from '../../../src/plugins/contracts/index.ts';
import { ClusterPin, type ClusterIdentity } from '../../../src/plugins/kubernetes/cluster-pin.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { kubeconfig, rejection, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { KubernetesStub } from '../../support/kubernetes-stub.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { files } from '../../support/operator-files.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const tls = resolve(import.meta.dirname, '../../fixtures/tls');
const name = 'kubernetes:/etc/thresher/kubeconfig';
const first = { server: 'https://10.0.0.1:6443', ca: 'a' };
const other = { server: 'https://10.0.0.2:6443', ca: 'b' };
const always = new AbortController().signal;

/** What a pin says to these, one after the other. */
async function judged(pin: ClusterPin, ...found: ClusterIdentity[]): Promise<string[]> {
  const said: string[] = [];
  for (const one of found)
    said.push(
      await pin.confirm(one).then(
        () => 'the same',
        (error: unknown) => (error as { code: string }).code,
      ),
    );
  return said;
}

describe('the cluster that a kubeconfig names', () => {
  let stateDir: string;
  const pin = (of = name, directory = stateDir) =>
    new ClusterPin(of, { stateDir: directory, memoryOf: inFiles(directory) });
  const files = () =>
    existsSync(join(stateDir, 'kubernetes')) ? readdirSync(join(stateDir, 'kubernetes')) : [];

  beforeEach(() => {
    stateDir = temporaryDirectory();
  });

  it('is another one when its address and its certificate authority are others', async () => {
    expect(await judged(pin(), first, other, first)).to.deep.equal([
      'the same',
      'kubernetes-other-cluster',
      'the same',
    ]);
  });

  it('is the same with a new address, with a new certificate authority, and with one after the other', async () => {
    const moved = { ...first, server: other.server };
    expect(await judged(pin(), first, moved)).to.deep.equal(['the same', 'the same']);
    expect(await judged(pin(), first, { ...first, ca: other.ca })).to.deep.equal(['the same', 'the same']);
    expect(await judged(pin(), first, moved, other)).to.deep.equal(['the same', 'the same', 'the same']);
  });

  it('is another one behind another path of one address, whose authority is that of what stands before them', async () => {
    const [prod, test] = ['prod', 'test'].map((one) => ({ ...first, server: `https://r.site/k8s/${one}` }));
    if (prod === undefined || test === undefined) throw new Error('no cluster');
    expect(await judged(pin(), prod, test, { ...prod, server: 'https://new.site/k8s/prod' })).to.deep.equal([
      ...['the same', 'kubernetes-other-cluster', 'the same'],
    ]);
  });

  it('is another one at another address where the authorities of the system are used: these say nothing', async () => {
    expect(await judged(pin(), { ...first, ca: '' }, { ...other, ca: '' })).to.deep.equal([
      'the same',
      'kubernetes-other-cluster',
    ]);
  });

  it('is remembered through a restart, and so is a change that was accepted', async () => {
    const before = pin();
    await before.keep();
    await judged(before, first, { ...first, ca: 'c' });
    expect(await judged(pin(), other)).to.deep.equal(['kubernetes-other-cluster']);
    expect(await judged(pin(), { server: other.server, ca: 'c' })).to.deep.equal(['the same']);
  });

  it('is remembered from when its workers are followed, also where it was asked before', async () => {
    const before = pin();
    await judged(before, first);
    expect(files()).to.deep.equal([]);
    await before.keep();
    expect(await judged(pin(), other)).to.deep.equal(['kubernetes-other-cluster']);
  });

  it('is not remembered by who only looks', async () => {
    await judged(pin(), first);
    expect(files()).to.deep.equal([]);
    const kept = pin();
    await kept.keep();
    await judged(kept, first);
    // A command that finds another address accepts it, and leaves the file as the daemon had it.
    await judged(pin(), { ...first, server: 'https://10.0.0.9:6443' });
    expect(await judged(pin(), { server: 'https://10.0.0.9:6443', ca: 'z' })).to.deep.equal([
      'kubernetes-other-cluster',
    ]);
    expect(await judged(pin(), { ...first, ca: 'z' })).to.deep.equal(['the same']);
  });

  it('is told with both addresses and the file that says what it was', async () => {
    const before = pin();
    await before.keep();
    await judged(before, first);
    const [file = ''] = files();
    const { message } = (await rejection(pin().confirm(other))) as Error;
    expect(message).to.contain(
      `${name} was https://10.0.0.1:6443 and is now https://10.0.0.2:6443 with another certificate authority: another cluster, where its workers are not. Name the new one in a kubeconfig of its own; if it is the same after all, remove ${join(stateDir, 'kubernetes', file)} and restart`,
    );
  });

  it('is that of its own kubeconfig and context alone', async () => {
    const [one, two] = [pin(), pin(`${name}#second`)];
    await one.keep();
    await two.keep();
    expect([...(await judged(one, first)), ...(await judged(two, other))]).to.deep.equal([
      'the same',
      'the same',
    ]);
    expect(await judged(pin(`${name}#second`), other)).to.deep.equal(['the same']);
  });

  it('is no error where there is no state directory, or a file in it that is cut off', async () => {
    const nowhere = pin(name, join(stateDir, 'none'));
    await nowhere.keep();
    expect(await judged(nowhere, first)).to.deep.equal(['the same']);
    expect(existsSync(join(stateDir, 'none'))).to.equal(false);
    const before = pin();
    await before.keep();
    await judged(before, first);
    writeFileSync(join(stateDir, 'kubernetes', files()[0] ?? ''), '{"server": "htt');
    expect(await judged(pin(), other)).to.deep.equal(['the same']);
  });

  it('hole 5: is remembered for the machine that takes over, and by no other name', async () => {
    const texts = new Map<string, string>();
    const memory = (kind: string) => ({
      placeOf: (text: string) => `${kind} ${text} of the database`,
      read: async (text: string) => texts.get(text),
      write: async (text: string, content: string) => {
        texts.set(text, content);
      },
    });
    const on = (of = name) => new ClusterPin(of, { stateDir: temporaryDirectory(), memoryOf: memory });
    const before = on();
    await before.keep();
    await judged(before, first);
    const { message } = (await rejection(on().confirm(other))) as Error;
    expect(message).to.contain('another cluster').and.to.contain('of the database and restart');
    expect(await judged(on(), { ...other, ca: first.ca })).to.deep.equal(['the same']);
    expect(await judged(on(`${name}#second`), other)).to.deep.equal(['the same']);
  });
});

describe('a login whose kubeconfig is changed to another cluster', () => {
  const cluster = (server: string, ca: string) => ({
    server,
    'certificate-authority-data': Buffer.from(`-----BEGIN CERTIFICATE-----\n${ca}`).toString('base64'),
  });

  it('is refused from then on, also between two looks at the file, until the file is put back as it was', async () => {
    const clock = new ManualClock();
    const directory = temporaryDirectory();
    const file = writeKubeconfig(kubeconfig(cluster(first.server, 'a')), directory);
    const pin = new ClusterPin(name, { stateDir: directory, memoryOf: inFiles(directory) });
    const access = new Access({ kind: 'file', file }, { clock, files }, (found) => pin.confirm(found));
    const server = async () => (await access.current(always)).access.server;
    expect(await server()).to.equal(first.server);
    renameSync(file, `${file}.old`);
    writeKubeconfig(kubeconfig(cluster(other.server, 'b')), directory);
    await clock.advance(11_000);
    for (let turn = 0; turn < 3; turn++) {
      expect(await rejection(access.current(always))).to.include({ code: 'kubernetes-other-cluster' });
      await clock.advance(4000);
    }
    renameSync(`${file}.old`, file);
    await clock.advance(11_000);
    expect(await server()).to.equal(first.server);
    writeKubeconfig(kubeconfig(cluster(other.server, 'a')), directory);
    await clock.advance(11_000);
    expect(await server()).to.equal(other.server);
  });

  it('stays as it was while it cannot be said which cluster it was, as by a database that is away', async () => {
    const clock = new ManualClock();
    const directory = temporaryDirectory();
    const file = writeKubeconfig(kubeconfig(cluster(first.server, 'a')), directory);
    const pin = new ClusterPin(name, { stateDir: directory, memoryOf: inFiles(directory) });
    let isAway = false;
    const access = new Access({ kind: 'file', file }, { clock, files }, async (found) => {
      if (isAway) throw new ThresherError('store-failed', 'the database does not answer');
      await pin.confirm(found);
    });
    const server = async () => (await access.current(always)).access.server;
    await server();
    isAway = true;
    writeKubeconfig(kubeconfig(cluster(other.server, 'a')), directory);
    for (let turn = 0; turn < 3; turn++) {
      await clock.advance(11_000);
      expect(await server()).to.equal(first.server);
    }
    isAway = false;
    await clock.advance(11_000);
    expect(await server()).to.equal(other.server);
  });

  it('is confirmed without the place where it is kept, once this daemon has written it', async () => {
    let [read, written] = [0, 0];
    const memory = {
      placeOf: (text: string) => text,
      read: async () => {
        read++;
        return undefined;
      },
      write: async () => {
        written++;
      },
    };
    const pin = new ClusterPin(name, { stateDir: temporaryDirectory(), memoryOf: () => memory });
    await pin.keep();
    await judged(pin, first);
    const before = read;
    expect(await judged(pin, first, first)).to.deep.equal(['the same', 'the same']);
    expect([read - before, written]).to.deep.equal([0, 1]);
  });
});

describe('the workers on a cluster that the kubeconfig does not name any more', () => {
  const worker = workerOf(1, { handle: { batchID: 'factory-1', uid: 'a' } });
  let stub: KubernetesStub;
  const stateDir = () => stub.directory;
  const kept = () => existsSync(join(stateDir(), 'kubernetes'));
  const cluster = (server: string, ca: string) =>
    kubeconfig({ server, 'certificate-authority': join(tls, ca) });

  beforeEach(async () => {
    stub = await KubernetesStub.start();
    writeKubeconfig(cluster(stub.url, 'ca.crt'), stub.directory);
  });

  afterEach(() => stub.stop());

  /** Plugins of a daemon that starts now. */
  const restarted = () => ({
    ...pluginContext(),
    factoryId: 'factory',
    configDir: stub.directory,
    stateDir: stateDir(),
  });

  /** Observes until something is shown, or trouble is told. */
  async function firstWord(context: Context): Promise<string> {
    const stop = new AbortController();
    const word = Promise.withResolvers<string>();
    const sink = { begin: () => undefined, observe: () => undefined, gone: () => undefined };
    const complete = () => {
      word.resolve('complete');
    };
    const trouble = ({ code }: { readonly code: string }) => {
      word.resolve(code);
    };
    const work = stub.plugin('monitor', {}, context).observe({ ...sink, complete, trouble }, stop.signal);
    const said = await word.promise;
    stop.abort();
    await work;
    return said;
  }

  it('are not absent, and their connection is in trouble, also after a restart', async () => {
    expect(await firstWord(restarted())).to.equal('complete');
    const other = await KubernetesStub.start();
    try {
      writeKubeconfig(cluster(other.url, 'other-ca.crt'), stub.directory);
      const context = restarted();
      expect(await firstWord(context)).to.equal('kubernetes-other-cluster');
      const result = (await stub.plugin('monitor', {}, context).check([worker], always)).get(1);
      expect(result?.kind === 'unknown' && result.error.code).to.equal('kubernetes-other-cluster');
      const killed = await stub
        .plugin('sweeper', {}, context)
        .kill([worker], always)
        .catch((error: unknown) => error);
      expect(killed).to.include({ code: 'kubernetes-other-cluster' });
      expect(other.requests).to.deep.equal([]);
    } finally {
      await other.stop();
    }
  });

  it('leave no file where only commands look', async () => {
    const context = restarted();
    await stub.plugin('sweeper', {}, context).list(always);
    await stub.plugin('monitor', {}, context).check([worker], always);
    const submitter = stub.plugin('submitter', { k8s_yaml_file: 'none.yaml' }, context);
    await submitter.preflight(always);
    await submitter.rehearse?.(worker, always);
    const { logs } = stub.plugin('monitor', {}, context);
    const reading = async () => {
      const read = logs?.read(worker, { stream: 'stdout', follow: false }, always);
      for await (const piece of read ?? []) throw new Error(`a log: ${Buffer.from(piece).toString()}`);
    };
    expect(await rejection(reading())).to.include({ code: 'no-log' });
    expect(stub.requests.length).to.be.greaterThan(2);
    expect(kept()).to.equal(false);
    await firstWord(context);
    expect(kept()).to.equal(true);
  });
});

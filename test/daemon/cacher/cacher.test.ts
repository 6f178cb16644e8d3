import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { noLog } from '../../../src/cli/environment.ts';
import type { CacheItem, CacheUse } from '../../../src/config/settings/cache-items.ts';
import { Cacher } from '../../../src/daemon/cacher/cacher.ts';
import { Fetching } from '../../../src/daemon/cacher/fetching.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { FileServer } from '../../support/file-server.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const path = '/queues.json';
const queues = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`Q${at}`, { status: 'online' }]));

describe('the cacher', () => {
  let server: FileServer;
  let directory: string;

  beforeEach(async () => {
    server = new FileServer();
    await server.start();
    directory = temporaryDirectory();
  });

  afterEach(async () => {
    await server.stop();
  });

  function cacherOf(use: CacheUse, more: Partial<CacheItem> = {}, harvesterId = 'us') {
    const key = use === 'queue-data' ? 'panda_queues.json' : 'queues_config_file';
    const url = server.url(path);
    const item: CacheItem = { key, subKey: '', use, from: { kind: 'web', url }, shown: url, ...more };
    const fetching = new Fetching({ clock: systemClock, files, timeout: 20_000, server: undefined });
    const parts = { items: [item], fetching, clock: systemClock, log: noLog, refreshInterval: 60_000 };
    const cacher = new Cacher({ directory: join(directory, 'cache'), harvesterId, ...parts });
    const refresh = async () => {
      const [outcome] = (await cacher.refresh('all', new AbortController().signal)).values();
      const [state] = await cacher.states();
      return { outcome, code: state?.failure?.code, message: state?.failure?.message, state };
    };
    return { refresh, content: join(directory, 'cache', key) };
  }

  describe('c31: from a server that asks for a certificate', () => {
    const fixture = (name: string) => join(import.meta.dirname, '../../fixtures/tls', name);
    const textOf = (name: string) => readFileSync(fixture(name), 'utf8');
    let cric: FileServer;

    beforeEach(async () => {
      cric = new FileServer({ cert: textOf('server.crt'), key: textOf('server.key') });
      await cric.start();
      cric.answers.set(path, (_, response) => {
        const isKnown = cric.seen.at(-1)?.hadCertificate === true;
        response.writeHead(isKnown ? 200 : 403).end(JSON.stringify(queues(3)));
      });
    });
    afterEach(() => cric.stop());

    const fetched = (certificateFor: readonly string[], url = cric.url(path)) => {
      const login = {
        kind: 'x509' as const,
        certFile: fixture('client.crt'),
        keyFile: fixture('client.key'),
      };
      const panda = { url: 'https://panda.test/api/v1', login, caFile: fixture('ca.crt'), timeout: 20_000 };
      const timeout = 20_000;
      const fetching = new Fetching({ clock: systemClock, files, timeout, server: panda, certificateFor });
      const from = { kind: 'web', url } as const;
      const item: CacheItem = { key: 'panda_queues.json', subKey: '', use: 'queue-data', from, shown: url };
      return fetching.fetch(item, undefined, new AbortController().signal);
    };

    it('is had with that of pandacon, and without its headers, where the settings name the server', async () => {
      expect((await fetched([new URL(cric.url('/')).origin]))?.bytes.length).to.be.greaterThan(10);
      expect(
        cric.seen.map(({ hadCertificate, headers }) => [hadCertificate, headers.authorization]),
      ).to.deep.equal([[true, undefined]]);
    });

    it('is had from a server that another one leads to, where the settings name that one', async () => {
      const first = new FileServer({ cert: textOf('server.crt'), key: textOf('server.key') });
      await first.start();
      try {
        first.answers.set(path, (_, response) => response.writeHead(302, { location: cric.url(path) }).end());
        const found = await fetched([new URL(cric.url('/')).origin], first.url(path));
        expect(found?.bytes.length).to.be.greaterThan(10);
        expect(first.seen.map(({ hadCertificate }) => hadCertificate)).to.deep.equal([false]);
      } finally {
        await first.stop();
      }
    });

    for (const others of [[], ['https://elsewhere.test', 'https://[::1'], ['https://127.0.0.1']])
      it(`is not had for ${JSON.stringify(others)}, and the message says how it would be`, async () => {
        const failure: unknown = await fetched(others).catch((error: unknown) => error);
        const { origin } = new URL(cric.url('/'));
        expect(failure).to.be.instanceOf(ThresherError).and.include({ code: 'web-refused' });
        expect(String(failure)).to.include(
          `answers with HTTP 403; if ${origin}, or a server that it leads to, wants a certificate, name that one in certificateFor of cacher`,
        );
        expect(cric.seen.map(({ hadCertificate }) => hadCertificate)).to.deep.equal([false]);
      });
  });

  it('takes no error in an object for a list of queues', async () => {
    server.serveJson(path, queues(3));
    const { refresh, content } = cacherOf('queue-data');
    expect(await refresh()).to.include({ outcome: 'new', code: undefined });
    const before = readFileSync(content, 'utf8');
    server.serveJson(path, { error: { code: 500 } });
    expect(await refresh()).to.include({ outcome: 'failed', code: 'cache-form' });
    expect(readFileSync(content, 'utf8')).to.equal(before);
  });

  for (const use of ['queue-data', 'queue-file'] as const) {
    it(`refuses a ${use} of less than half the queues until the operator removes the last one`, async () => {
      server.serveJson(path, queues(20));
      const { refresh, content } = cacherOf(use);
      await refresh();
      server.serveJson(path, queues(9));
      const refused = await refresh();
      expect(refused).to.include({ outcome: 'failed', code: 'cache-shrunk' });
      expect(refused.message).to.include('has 9 entries, and the one before had 20').and.to.include(content);
      server.serveJson(path, queues(10));
      expect(await refresh()).to.include({ outcome: 'new', code: undefined });
      server.serveJson(path, queues(1));
      expect(await refresh()).to.include({ outcome: 'failed' });
      rmSync(content);
      expect(await refresh()).to.include({ outcome: 'new', code: undefined });
    });
  }

  it('refuses queues of CRIC of which less than half are still of this instance', async () => {
    const some = (own: number) =>
      Object.fromEntries(
        Array.from({ length: 40 }, (_, at) => {
          const harvester = at < own ? 'us' : 'others';
          return [`Q${at}`, { status: 'online', pilot_manager: 'Harvester', harvester }];
        }),
      );
    server.serveJson(path, some(20));
    const { refresh, content } = cacherOf('queue-data');
    await refresh();
    server.serveJson(path, some(9));
    const refused = await refresh();
    expect(refused).to.include({ outcome: 'failed', code: 'cache-shrunk' });
    expect(refused.message).to.include('has 9 entries of this instance, and the one before had 20');
    expect(refused.message).to.include(content);
    server.serveJson(path, some(10));
    expect(await refresh()).to.include({ outcome: 'new', code: undefined });
    // What an instance of another name had says nothing of this one.
    expect(await cacherOf('queue-data', {}, 'another').refresh()).to.include({ code: undefined });
  });

  it('has the new queues although the dump file cannot be written, and writes that as soon as it can', async () => {
    const dumpFile = join(directory, 'gone', 'dump.json');
    server.serveJson(path, queues(3));
    const { refresh, content } = cacherOf('queue-data', { dumpFile });
    const first = await refresh();
    expect(first).to.include({ outcome: 'new', code: 'cache-dump' });
    expect(first.state?.fetched?.entries).to.equal(3);
    expect(existsSync(content)).to.equal(true);
    expect(await refresh()).to.include({ outcome: 'same', code: 'cache-dump' });
    mkdirSync(join(directory, 'gone'));
    expect(await refresh()).to.include({ outcome: 'same', code: undefined });
    expect(JSON.parse(readFileSync(dumpFile, 'utf8'))).to.deep.equal(queues(3));
    expect(await refresh()).to.include({ outcome: 'same', code: undefined });
  });

  it('takes no queue file that is larger than the local one may be', async () => {
    const text = `{"Q": {"status": "online"}}${' '.repeat(16 * 1024 * 1024)}`;
    server.answers.set(path, (_, response) => response.end(text));
    const said = await cacherOf('queue-file').refresh();
    expect(said).to.include({ outcome: 'failed', code: 'web-too-large' });
    expect(said.message).to.match(/has more than 16 MB/);
    expect(await cacherOf('queue-data').refresh()).to.include({ outcome: 'new' });
  });
});

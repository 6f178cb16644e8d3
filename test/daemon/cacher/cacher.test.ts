import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { noLog } from '../../../src/cli/environment.ts';
import type { CacheItem, CacheUse } from '../../../src/config/settings/cache-items.ts';
import { Cacher } from '../../../src/daemon/cacher/cacher.ts';
import { Fetching } from '../../../src/daemon/cacher/fetching.ts';
import { systemClock } from '../../../src/util/clock.ts';
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

  function cacherOf(use: CacheUse, more: Partial<CacheItem> = {}) {
    const key = use === 'queue-data' ? 'panda_queues.json' : 'queues_config_file';
    const url = server.url(path);
    const item: CacheItem = { key, subKey: '', use, from: { kind: 'web', url }, shown: url, ...more };
    const fetching = new Fetching({ clock: systemClock, files, timeout: 20_000, server: undefined });
    const parts = { items: [item], fetching, clock: systemClock, log: noLog, refreshInterval: 60_000 };
    const cacher = new Cacher({ directory: join(directory, 'cache'), ...parts });
    const refresh = async () => {
      const [outcome] = (await cacher.refresh('all', new AbortController().signal)).values();
      const [state] = await cacher.states();
      return { outcome, code: state?.failure?.code, message: state?.failure?.message, state };
    };
    return { refresh, content: join(directory, 'cache', key) };
  }

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

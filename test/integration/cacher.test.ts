import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { FileServer } from '../support/file-server.ts';
import { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const entry = (more: object = {}) => ({
  panda_resource: undefined,
  pilot_manager: 'Harvester',
  harvester: 'test-harvester',
  type: 'production',
  workflow: 'pull',
  status: 'online',
  params: { maxWorkers: 1, nQueueLimitWorker: 1 },
  ...more,
});
const cric = '/cric.json';
const template = { isTemplateQueue: true, prodSourceLabel: 'managed', demand: 'fill' };

describe('a daemon whose queues are in CRIC', () => {
  let server: FileServer;
  let site: Site | undefined;

  beforeEach(async () => {
    server = new FileServer();
    await server.start();
  });

  afterEach(async () => {
    await site?.clean();
    site = undefined;
    await server.stop();
  });

  const siteWith = (
    queues: Record<string, Record<string, unknown>>,
    more: {
      data?: readonly string[];
      qconf?: Record<string, unknown>;
      cacher?: Record<string, unknown>;
    } = {},
  ) => {
    const { data = [`panda_queues.json||${server.url(cric)}`], qconf, cacher } = more;
    site = new Site({
      queues,
      settings: {
        qconf: { checkInterval: 0.1, queueList: ['DYNAMIC'], ...qconf },
        cacher: { data, refreshInterval: 0.01, sleepTime: 0.1, timeout: 5, ...cacher },
      },
    });
    return site;
  };

  const workersOf = async (at: Site, queue: string) => {
    const all = await at.workers({ queue });
    return all.filter(({ status }) => status === 'submitted' || status === 'running').length;
  };
  const has = (at: Site, queue: string, workers: number) =>
    until(`${queue} has ${workers} workers`, async () => (await workersOf(at, queue)) === workers);
  const states = async (at: Site) =>
    Object.fromEntries((await at.queues()).map(({ name, queueStatus }) => [name, queueStatus]));

  it('runs a queue as soon as CRIC gives it, with its limits, and no longer than CRIC does', async () => {
    server.serveJson(cric, { OTHERS: entry({ harvester: 'somebody-else' }) });
    const at = siteWith({ 'production.pull': template });
    const daemon = at.start();
    await until('the file is fetched', () => existsSync(at.path('state/cache/panda_queues.json')));
    server.serveJson(cric, { MINE: entry(), OTHERS: entry({ harvester: 'somebody-else' }) });
    await has(at, 'MINE', 1);
    server.serveJson(cric, { MINE: entry({ params: { maxWorkers: 2, nQueueLimitWorker: 2 } }) });
    await has(at, 'MINE', 2);
    server.serveJson(cric, { MINE: entry({ status: 'offline' }) });
    await until('CRIC closes it', async () => (await states(at)).MINE === 'offline');
    server.serveJson(cric, { OTHERS: entry({ harvester: 'somebody-else' }) });
    await until('it is removed', async () => {
      const found = (await at.queues()).find(({ name }) => name === 'MINE');
      return found?.reasons.some(({ code }) => code === 'queue-removed');
    });
    expect(daemon.output()).not.to.match(/ERROR/);
  });

  it('starts without network from what it fetched before', async () => {
    server.serveJson(cric, { MINE: entry() });
    const at = siteWith({ 'production.pull': template });
    const first = at.start();
    await has(at, 'MINE', 1);
    first.process.kill('SIGTERM');
    expect(await first.ended).to.equal(0);
    await server.stop();
    at.start();
    await has(at, 'MINE', 1);
    const { stdout } = await at.run('cacher');
    expect(stdout).to.match(/panda_queues\.json +(failing|current)/);
    await until('the failure is shown', async () => {
      const shown = await at.run('cacher', 'list', '--output', 'json');
      return /"state": ?"failing"/.test(shown.stdout) && /ECONNREFUSED/.test(shown.stdout);
    });
    await server.start();
  });

  it('holds queues back that may depend on CRIC until it was fetched once, and no others', async () => {
    const at = siteWith(
      {
        WAITS: { maxWorkers: 1, nQueueLimitWorker: 1 },
        OWN: { maxWorkers: 1, nQueueLimitWorker: 1, demand: 'fill' },
      },
      { qconf: { queueList: ['ALL'] } },
    );
    at.start();
    await has(at, 'OWN', 1);
    const waiting = await at.queue('WAITS');
    expect(waiting.queueStatus).to.equal('incomplete');
    expect(waiting.reasons[0]?.message).to.match(
      /^panda_queues\.json was never fetched from http:.*so queues that may depend on it do not start/,
    );
    server.serveJson(cric, { ELSEWHERE: entry({ harvester: 'somebody-else' }) });
    await has(at, 'WAITS', 1);
  });

  it('keeps the last good file while the URL is gone, rubbish, half, empty, a list, an error or huge', async () => {
    server.serveJson(cric, { MINE: entry() });
    // A busy machine takes its time for the huge one.
    const at = siteWith({ 'production.pull': template }, { cacher: { timeout: 60 } });
    const daemon = at.start();
    await has(at, 'MINE', 1);
    const content = readFileSync(at.path('state/cache/panda_queues.json'), 'utf8');
    const answers: [string, number, string, RegExp][] = [
      ['gone', 404, 'no', /answers with HTTP 404 \[web-refused\]/],
      ['rubbish', 200, '<html>maintenance</html>', /is no JSON.* \[cache-form\]/],
      ['half', 200, '{"MINE": {"status":', /is no JSON.* \[cache-form\]/],
      ['without queues', 200, '{"error": "no"}', /holds no queue.* \[cache-form\]/],
      ['empty', 200, '{}', /holds no queue.* \[cache-form\]/],
      ['a list', 200, '[1]', /holds no object.* \[cache-form\]/],
      ['an error in an object', 200, '{"error": {"code": 500}}', /holds no queue.* \[cache-form\]/],
      ['huge', 200, ' '.repeat(65 * 1024 * 1024), /has more than 64 MB \[web-too-large\]/],
    ];
    for (const [what, status, body, said] of answers) {
      server.answers.set(cric, (_, response) => response.writeHead(status).end(body));
      const { stdout, status: exit } = await at.run('cacher', 'refresh');
      expect(`${what}: ${stdout}`).to.match(said);
      expect(exit, what).to.equal(1);
      expect(readFileSync(at.path('state/cache/panda_queues.json'), 'utf8')).to.equal(content);
    }
    expect(await workersOf(at, 'MINE')).to.equal(1);
    expect((await states(at)).MINE).to.equal('online');
    await until('the daemon says it', () =>
      /WARN.*could not be fetched; the last good one counts/.test(daemon.output()),
    );
    // A file that is written half and left is no trace of one.
    expect(readdirSync(at.path('state/cache')).filter((name) => name.endsWith('.tmp'))).to.deep.equal([]);
  });

  it('says of its queues that their data are old, and goes on', async () => {
    server.serveJson(cric, { MINE: entry() });
    const at = siteWith(
      { 'production.pull': template },
      { cacher: { warnAge: 0.001, refreshInterval: 0.02 } },
    );
    at.start();
    await has(at, 'MINE', 1);
    await server.stop();
    const said = await until('the queue says so', async () => {
      const { reasons } = await at.queue('MINE');
      return reasons.find(({ code }) => code === 'cache-old');
    });
    expect(said.message).to.match(/panda_queues\.json was last fetched at .* from http:.*goes on with that/);
    const { stdout } = await at.run('status');
    expect(stdout).to.match(/cacher.*failing.*was last fetched at/);
    expect(await workersOf(at, 'MINE')).to.equal(1);
    await server.start();
  });

  it('tells before a first start how the file comes, and why it did not', async () => {
    const at = siteWith(
      { WAITS: { maxWorkers: 1, nQueueLimitWorker: 1 } },
      { qconf: { queueList: ['ALL'] } },
    );
    const checked = await at.run('check-config');
    expect(checked.stdout).to.match(/was never fetched .* fetch it with `thresher cacher refresh`/);
    expect((await at.run('cacher', 'refresh')).status).to.equal(1);
    const { stdout } = await at.run('cacher');
    expect(stdout).to.match(/panda_queues\.json +missing .*answers with HTTP 404/);
    server.serveJson(cric, { MINE: entry() });
    expect((await at.run('cacher', 'refresh')).stdout).to.equal('panda_queues.json: new\n');
    expect((await at.run('cacher')).stdout).to.match(/panda_queues\.json +current/);
  });

  it('goes on with what CRIC says while the queue file from elsewhere never came', async () => {
    server.serveJson(cric, { MINE: entry() });
    const at = siteWith(
      { 'production.pull': template },
      {
        data: [`panda_queues.json||${server.url(cric)}`, `queues_config_file||${server.url('/never')}`],
        qconf: { configFromCacher: true },
      },
    );
    at.start();
    await has(at, 'MINE', 1);
    server.serveJson(cric, { MINE: entry({ status: 'offline' }) });
    await until('CRIC closes it', async () => (await states(at)).MINE === 'offline');
  });

  it('is not disturbed by a change that concerns queues of others alone', async () => {
    server.serveJson(cric, { MINE: entry(), OTHERS: entry({ harvester: 'somebody-else' }) });
    const at = siteWith({ 'production.pull': template });
    const daemon = at.start();
    await has(at, 'MINE', 1);
    const reloads = () => daemon.output().match(/fetched data changed/g)?.length ?? 0;
    const before = reloads();
    server.serveJson(cric, { MINE: entry(), OTHERS: entry({ harvester: 'somebody-else', corecount: 64 }) });
    await until('the change is fetched', () =>
      readFileSync(at.path('state/cache/panda_queues.json'), 'utf8').includes('"corecount":64'),
    );
    server.serveJson(cric, { MINE: entry({ params: { maxWorkers: 2, nQueueLimitWorker: 2 } }) });
    await has(at, 'MINE', 2);
    expect(reloads()).to.equal(before + 1);
  });

  it('takes queues from a queue file elsewhere, below its own, and names the URL of mistakes in it', async () => {
    const remote = '/queues.json';
    const local = { maxWorkers: 1, nQueueLimitWorker: 1, demand: 'fill' };
    const at = siteWith(
      { BOTH: local },
      {
        data: [`queues_config_file||${server.url(remote)}`],
        qconf: { queueList: ['ALL'], configFromCacher: true },
      },
    );
    const whole = JSON.parse(readFileSync(at.queueFile, 'utf8')) as Record<string, object>;
    const THERE = { ...whole.BOTH, maxWorkers: 2, nQueueLimitWorker: 2 };
    server.serveJson(remote, {
      THERE,
      BOTH: { maxWorkers: 7, siteFamily: 'far' },
      WRONG: { ...THERE, mapType: 'x' },
    });
    at.start();
    await has(at, 'THERE', 2);
    await has(at, 'BOTH', 1);
    const explained = await at.run('explain', 'BOTH');
    expect(explained.stdout).to.match(/siteFamily +BOTH \(queues_config_file\) +\d+ +"far"/);
    expect(explained.stdout).to.match(/maxWorkers +BOTH +\d+ +1/);
    const checked = await at.run('check-config', 'WRONG');
    expect(checked.stdout).to.include(`(fetched from ${server.url(remote)})`);
    expect(checked.stdout).to.include(join('state', 'cache', 'queues_config_file'));
  });

  it('shows in explain what CRIC says, and writes the file that other programs read', async () => {
    server.serveJson(cric, { MINE: entry({ corecount: 4, maxtime: 3600 }) });
    const dump = 'dumped.json';
    const at = siteWith(
      { 'production.pull': template },
      { data: [`panda_queues.json||${server.url(cric)}|${dump}`] },
    );
    const { stdout, status: code } = await at.run('cacher', 'refresh');
    expect([stdout, code]).to.deep.equal(['panda_queues.json: new\n', 0]);
    expect(JSON.parse(readFileSync(at.path(dump), 'utf8'))).to.have.property('MINE');
    const explained = await at.run('explain', 'MINE');
    expect(explained.stdout).to.match(/maxWorkers +CRIC +- +1/);
    expect(explained.stdout).to.match(/template +production\.pull/);
    writeFileSync(at.path('state/cache/panda_queues.json'), 'damaged');
    const checked = await at.run('check-config');
    expect(checked.stdout).to.match(/not as thresher wrote it.*\[cache-damaged\]/);
    expect((await at.run('cacher', 'refresh')).stdout).to.equal('panda_queues.json: new\n');
  });
});

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Fault } from '../support/fault-proxy.ts';
import { sharedPanda } from '../support/panda.ts';
import type { PandaCallName } from '../support/panda-proxy.ts';
import { PandaSite, type PandaSiteOptions } from '../support/panda-site.ts';
import { type RunningDaemon, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

const ordered = 2;

/** Options of a queue that needs no server. */
const fill = { runMode: 'self', demand: 'fill', maxWorkers: 1, nQueueLimitWorker: 1 };

/** Failures of one call that follows an order; the next call of the name goes well. */
const failures: readonly (readonly [call: PandaCallName, what: string, fault: Fault])[] = [
  ['acquire_commands', 'request', { kind: 'cut-before' }],
  ['acquire_commands', 'answer', { kind: 'cut-after' }],
  ['acquire_commands', 'half answer', { kind: 'half' }],
  ['acquire_commands', 'silent answer', { kind: 'stall' }],
  ['acknowledge_commands', 'answer', { kind: 'cut-after' }],
  ['acknowledge_commands', 'half answer', { kind: 'half' }],
  ['update_workers', 'request', { kind: 'cut-before' }],
  ['update_workers', 'answer', { kind: 'cut-after' }],
  ['update_workers', 'half answer', { kind: 'half' }],
  ['update_workers', 'error 500', { kind: 'text', status: 500, text: 'Internal Server Error' }],
  ['update_workers', 'refusal 403', { kind: 'text', status: 403, text: 'forbidden' }],
  ['update_workers', 'page of a gateway', { kind: 'text', status: 200, text: '<html>later</html>' }],
  ['report_worker_statistics', 'answer', { kind: 'cut-after' }],
  ['report_worker_statistics', 'half answer', { kind: 'half' }],
];
/** The server gave the order with this answer. */
const isLost = ([call, what]: (typeof failures)[number]) =>
  call === 'acquire_commands' && /answer/.test(what) && what !== 'silent answer';

describe('the link to a real PanDA server that fails', () => {
  let panda: PandaSite;
  let daemon: RunningDaemon;
  /** Workers that the server ordered so far, and had. */
  let expected = 0;

  before(async () => {
    const names = ['D', 'K', 'N', 'S', ...failures.map((_, at) => `F${at}`)];
    panda = await PandaSite.start({
      queues: { own: fill, ...Object.fromEntries(names.map((name) => [name, {}])) },
      pandacon: { timeout: 5 },
    });
    // The server is down when the daemon starts.
    panda.proxy.inject(undefined, { kind: 'cut-before' });
    daemon = panda.site.start();
  });

  after(() => panda.clean());

  const ofQueue = async (queue: string) =>
    (await panda.serverWorkers()).filter(({ computingsite }) => computingsite === panda.siteOf(queue));
  const untilAll = (queue: string, status: string) => {
    let seen: Awaited<ReturnType<typeof ofQueue>> = [];
    return until(
      () => `${queue} has ${ordered} workers that are ${status}: ${JSON.stringify(seen)}\n${lastLines()}`,
      async () => {
        seen = await ofQueue(queue);
        return seen.length === ordered && seen.every((worker) => worker.status === status);
      },
    );
  };
  const untilRunning = (queue: string) => untilAll(queue, 'running');
  const lastLines = () => daemon.output().slice(-1500);
  const filled = async () =>
    (await panda.site.workers({ queue: panda.siteOf('own') })).filter(({ status }) => status === 'running');

  it('is down at the start, which delays none of the queues that do not need it', async () => {
    await until('the other queue has its worker', async () => (await filled()).length === 1);
    let codes: readonly string[] = [];
    await until(
      () => `the queue says why it has none, not ${codes.join()}`,
      async () => {
        codes = (await panda.site.queue(panda.siteOf('D'))).reasons.map(({ code }) => code);
        return codes.some((code) => code.startsWith('panda-'));
      },
    );
    panda.order({ SCORE: ordered }, 'D');
    panda.proxy.heal();
    await untilRunning('D');
    expected += ordered;
  });

  for (const [at, failure] of failures.entries()) {
    const [call, what, fault] = failure;
    it(`orders ${ordered} workers, and has them once though the ${what} of ${call} goes wrong`, async () => {
      const queue = `F${at}`;
      const block = panda.proxy.inject('acquire_commands', { kind: 'cut-before' });
      panda.order({ SCORE: ordered }, queue);
      const injected = panda.proxy.inject(call, fault, { times: 1 });
      block.remove();
      await until('the fault has hit', () => injected.hits === 1);
      if (isLost(failure)) {
        await until('the server gave the order away', async () => (await lastStatus()) === 'retrieved');
        panda.order({ SCORE: ordered }, queue);
      }
      await untilRunning(queue);
      expected += ordered;
    });
  }
  const lastStatus = async () => (await panda.commands()).at(-1)?.status;

  it('takes 1 s for each call, and its order is still carried out', async () => {
    const slow = panda.proxy.inject(undefined, { kind: 'delay', ms: 1000 });
    panda.order({ SCORE: ordered }, 'S');
    await untilRunning('S');
    expected += ordered;
    expect(slow.hits).to.be.above(2);
    slow.remove();
  });

  it('gives a command for a queue that does not exist, and the next command is carried out', async () => {
    panda.command('SET_N_WORKERS_JOBTYPE:NO_SUCH_QUEUE', { managed: { SCORE: 5 } });
    panda.command('MAKE_COFFEE:NO_SUCH_QUEUE', { sugar: true });
    panda.order({ SCORE: ordered }, 'N');
    await untilRunning('N');
    expected += ordered;
    await untilSaid(daemon, /NO_SUCH_QUEUE/);
    await untilSaid(daemon, /MAKE_COFFEE/);
    await until('all commands are acknowledged', async () =>
      (await panda.commands()).every(({ status }) => status !== 'new'),
    );
  });

  it('ends those workers by KILL_WORKERS that are meant, and hears of it', async () => {
    panda.order({ SCORE: ordered }, 'K');
    await untilRunning('K');
    expected += ordered;
    const elsewhere = panda.siteOf('D');
    panda.command('KILL_WORKERS', {
      status: ['submitted', 'running'],
      computingSite: [panda.siteOf('K')],
      computingElement: 'ALL',
      submissionHost: 'ALL',
    });
    await untilAll('K', 'cancelled');
    const others = (await panda.site.workers({ queue: elsewhere })).map(({ status }) => status);
    expect(others).to.deep.equal(Array.from({ length: ordered }, () => 'running'));
  });

  it('hangs, and hears of the ends that came meanwhile, and had each worker once', async () => {
    panda.proxy.inject(undefined, { kind: 'stall' });
    const since = panda.proxy.count();
    await until('it hangs', () => panda.proxy.count() > since);
    panda.letEnd();
    await until('all have ended', async () => {
      const running = await panda.site.workers({ status: 'running' });
      return running.filter(({ computingSite }) => computingSite !== panda.siteOf('own')).length === 0;
    });
    panda.proxy.heal();
    let workers: Awaited<ReturnType<typeof panda.serverWorkers>> = [];
    const finished = () => workers.filter(({ status }) => status === 'finished').length;
    await until(
      () => `it has all ${expected - ordered} ends, not ${finished()}\n${lastLines()}`,
      async () => {
        workers = await panda.serverWorkers();
        return finished() === expected - ordered;
      },
    );
    expect(workers).to.have.length(expected);
    const ids = new Set(workers.map(({ workerid }) => workerid));
    const starts = [...panda.site.starts()].filter(([id]) => ids.has(id));
    expect(starts.map(([, times]) => times)).to.deep.equal(Array.from({ length: expected }, () => 1));
    const rows = await panda.site.workers();
    expect(rows.filter(({ computingSite }) => computingSite !== panda.siteOf('own'))).to.have.length(
      expected,
    );
  });
});

describe('queues beside a real PanDA server that hangs', () => {
  let panda: PandaSite;

  before(async () => {
    // Whoever waited for a call to end would wait longer than the test does.
    panda = await PandaSite.start({ queues: { own: fill, D: {} }, pandacon: { timeout: 600 } });
  });
  after(() => panda.clean());

  it('get their workers as before', async () => {
    panda.site.start();
    const filled = async () => panda.site.workers({ queue: panda.siteOf('own'), status: 'running' });
    await until('the server is asked, and the other queue has its worker', async () => {
      return panda.proxy.count('acquire_commands', true) > 0 && (await filled()).length === 1;
    });
    panda.proxy.inject(undefined, { kind: 'stall' });
    const since = panda.proxy.count();
    await until('it hangs', () => panda.proxy.count() > since);
    for (let times = 0; times < 2; times++) {
      const [before] = await filled();
      const killed = await panda.site.run('kill', String(before?.workerID));
      expect(killed.status, killed.stderr).to.equal(0);
      await until('the other queue has another worker', async () => {
        const [now] = await filled();
        return now !== undefined && now.workerID !== before?.workerID;
      });
    }
  });
});

describe('the login to a real PanDA server', () => {
  const sites: PandaSite[] = [];

  afterEach(async () => {
    await Promise.all(sites.splice(0).map((panda) => panda.clean()));
  });

  async function open(options: PandaSiteOptions): Promise<PandaSite> {
    const panda = await PandaSite.start(options);
    sites.push(panda);
    return panda;
  }
  const { tokenFile, origin } = sharedPanda.server();
  const byToken = (token: string, as = origin) => ({
    auth_type: 'oidc',
    auth_token: token,
    auth_origin: as,
    cert_file: undefined,
    key_file: undefined,
  });
  /** The reason of a link that has not begun yet names the failure in its message. */
  const untilSays = (panda: PandaSite, code: string) => {
    let said: readonly string[] = [];
    return until(
      () => `the queue says ${code}, not ${said.join()}`,
      async () => {
        const { reasons } = await panda.site.queue(panda.siteOf());
        said = reasons.map((reason) => `${reason.code}: ${reason.message}`);
        return said.some((one) => one.includes(code));
      },
    );
  };

  it('uses the token that replaces one that has ended, without a restart', async () => {
    const panda = await open({ pandacon: byToken('file:token') });
    writeFileSync(panda.site.path('token'), sharedPanda.token('--lifetime', '-60'));
    panda.order({ SCORE: 1 });
    panda.site.start();
    await untilSays(panda, 'panda-token');
    writeFileSync(panda.site.path('token'), sharedPanda.token());
    await panda.untilServerHas(1, 'running');
  });

  it('hole 3: is shown nowhere, although the server says it back in its errors', async () => {
    const panda = await open({ pandacon: byToken('file:token') });
    const token = sharedPanda.token();
    writeFileSync(panda.site.path('token'), token, { mode: 0o600 });
    const [, claims = '', signature = ''] = token.split('.');
    const said = { Authorization: `Bearer ${token}`, in: encodeURIComponent(`a=${token}&`) };
    for (const [call, status] of [
      ['acquire_commands', 403],
      ['heartbeat', 500],
    ] as const)
      panda.proxy.inject(call, { kind: 'text', status, text: `token is refused: ${JSON.stringify(said)}` });
    panda.proxy.inject('get_resource_types', {
      kind: 'text',
      status: 200,
      text: JSON.stringify({ success: false, message: `no ${token}`, data: null }),
    });
    const daemon = panda.site.start();
    await untilSays(panda, 'panda-');
    await until('the failures are written down', () =>
      readFileSync(join(panda.site.stateDir, 'panda/status.json'), 'utf8').includes('token is refused'),
    );
    const shown: Record<string, string> = { log: daemon.output() };
    for (const command of ['panda', 'queues', 'status'] as const) {
      const { stdout, stderr } = await panda.site.run(command);
      shown[`thresher ${command}`] = stdout + stderr;
    }
    for (const file of readdirSync(panda.site.stateDir, { recursive: true, withFileTypes: true }))
      if (file.isFile()) shown[file.name] = readFileSync(join(file.parentPath, file.name), 'latin1');
    expect(shown['thresher panda']).to.include('(hidden)');
    expect(shown['log']).to.include('(hidden)');
    expect(shown).to.include.keys('status.json', 'thresher.db');
    for (const [where, text] of Object.entries(shown))
      for (const piece of [
        token.slice(0, 40),
        claims.slice(0, 40),
        claims.slice(-20),
        signature.slice(0, 20),
      ])
        expect(text.includes(piece), where).to.equal(false);
  });

  it('says that the role is missing, of a certificate and of a token, and that the server does not know a role', async () => {
    const user = sharedPanda.server().user;
    const certificate = await open({ as: user, pandacon: { cert_file: user.cert, key_file: user.key } });
    const groups = await open({ pandacon: byToken('file:token') });
    writeFileSync(groups.site.path('token'), sharedPanda.token('--groups', 'test'));
    const elsewhere = await open({ pandacon: byToken(`file:${tokenFile}`, 'elsewhere.production') });
    for (const { site } of [certificate, groups, elsewhere]) site.start();
    await untilSays(certificate, 'panda-role');
    await untilSays(groups, 'panda-token');
    await untilSays(elsewhere, 'panda-token');
    for (const panda of [certificate, groups, elsewhere]) expect(panda.starts()).to.equal(0);
  });

  it('keeps two instances apart, each with its orders and its workers', async () => {
    const [one, other] = await Promise.all([open({}), open({})]);
    one.order({ SCORE: 1 });
    other.order({ SCORE: 2, MCORE: 1 });
    for (const { site } of [one, other]) site.start();
    const [mine, theirs] = await Promise.all([
      one.untilServerHas(1, 'running'),
      other.untilServerHas(3, 'running'),
    ]);
    expect(mine.map(({ computingsite }) => computingsite)).to.deep.equal([one.siteOf()]);
    expect(theirs.map(({ resourcetype }) => resourcetype).sort()).to.deep.equal(['MCORE', 'SCORE', 'SCORE']);
    const all = { computingSite: 'ALL', computingElement: 'ALL', submissionHost: 'ALL' };
    one.command('KILL_WORKERS', { status: 'ALL', ...all });
    await one.untilServerHas(1, 'cancelled');
    await other.untilServerHas(3, 'running');
  });
});

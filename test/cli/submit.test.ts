import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { realEnvironment } from '../../src/cli/environment.ts';
import { exitStatusOf, followRequest, untilEnded } from '../../src/cli/wait-for-request.ts';
import { readSettings } from '../../src/config/settings/settings.ts';
import { takeLock } from '../../src/daemon/lock.ts';
import { RequestFile } from '../../src/daemon/requests/request-file.ts';
import { stateDirAt } from '../../src/daemon/state-dir.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/util/clock.ts';
import { runHere } from '../support/command-line.ts';
import { recordingLog, workerOf } from '../support/samples.ts';
import { until } from '../support/until.ts';
import { temporaryDirectory } from '../support/temporary.ts';

let directory: string;
let store: Store;

const run = (...args: string[]) => runHere('--config', join(directory, 'thresher.yaml'), ...args);
const firstRequest = async () => (await store.requests.open(new Set())).added[0];
const idOf = (stdout: string) => /^request (\w+):/.exec(stdout)?.[1] ?? '';

/** A state directory as a daemon leaves it. */
async function daemonRan(): Promise<void> {
  writeFileSync(join(directory, 'thresher.yaml'), 'master: { stateDir: state, factoryId: factory }\n');
  writeFileSync(join(directory, 'panda_queueconfig.json'), '{}');
  mkdirSync(join(directory, 'state'), { mode: 0o700 });
  writeFileSync(join(directory, 'state/factory'), 'factory\n');
  store = await openStore(join(directory, 'state/thresher.db'), 'factory');
  const report = { limits: {}, reportTime: 1 };
  const full = { code: 'max-workers', message: '3 of maxWorkers 3 are alive' };
  const none = { code: 'demand-none', message: 'demand is none' };
  await store.queues.report({ ...report, queue: 'CERN', queueStatus: 'online', reasons: [none, full] });
  const wrong = { code: 'queue-refused', message: 'maxWorkers is "3", a string' };
  await store.queues.report({ ...report, queue: 'BAD', queueStatus: 'refused', reasons: [wrong] });
}

describe('thresher submit', () => {
  beforeEach(async () => {
    directory = temporaryDirectory();
    await daemonRan();
  });
  afterEach(() => store.close());

  it('stores what it is given while no daemon runs, and says so', async () => {
    const script = join(directory, 'run.sh');
    writeFileSync(script, '#!/bin/sh\n');
    chmodSync(script, 0o755);
    writeFileSync(join(directory, 'key'), 'secret');
    chmodSync(join(directory, 'key'), 0o600);
    const { status, stdout, stderr } = await run(
      ...['submit', 'CERN', '--count', '2', '--file', script, '--secret-file', `${directory}/key:id_rsa`],
      ...['--env', 'A=b=c', '--value', 'image=alma9', '--', './run.sh', "it's", '--count', '$(x)'],
    );
    expect([status, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.match(
      /^request \w{12}: 2 workers of CERN; no daemon is running: it is taken up when one starts\n$/,
    );
    const request = await firstRequest();
    expect(request).to.deep.equal({
      id: idOf(stdout),
      queue: 'CERN',
      count: 2,
      requirements: {},
      payload: {
        files: [
          { name: 'run.sh', mode: 0o755, content: Buffer.from('#!/bin/sh\n').toString('base64') },
          { name: 'id_rsa', mode: 0o600, content: Buffer.from('secret').toString('base64'), secret: true },
        ],
        env: { A: 'b=c' },
        values: { image: 'alma9' },
        argv: ['./run.sh', "it's", '--count', '$(x)'],
      },
    });
  });

  it('asks for plain workers of the queue where it is given nothing', async () => {
    const { stdout } = await run('submit', 'CERN', '--output', 'json');
    const [view] = JSON.parse(stdout) as Record<string, unknown>[];
    expect(view).to.deep.include({
      queueName: 'CERN',
      state: 'waiting',
      count: 1,
      payload: [],
      by: 'command-line',
    });
    expect(await firstRequest()).to.deep.include({ id: view?.id, count: 1 });
  });

  describe('--shape', () => {
    beforeEach(async () => {
      const report = { limits: {}, reportTime: 1, queueStatus: 'online', reasons: [] } as const;
      for (const queue of ['POOL', 'ONE', 'PLAIN']) await store.queues.report({ ...report, queue });
      const common = {
        mapType: 'NoJob',
        maxWorkers: 5,
        nQueueLimitWorker: 5,
        submitter: { name: 'LocalSubmitter', module: 'thresher/local', templateFile: 'pilot.yaml' },
        monitor: { name: 'LocalMonitor', module: 'thresher/local' },
        sweeper: { name: 'LocalSweeper', module: 'thresher/local' },
      };
      const shapes = [
        { name: 'small', slotAd: 'small.ad' },
        { name: 'big', slotAd: 'big.ad', nCore: 16, minRamCount: 64_000, values: { zone: 'b', disk: 'ssd' } },
      ];
      const queues = {
        POOL: { ...common, demand: { name: 'htcondor-idle', shapes } },
        ONE: { ...common, demand: { name: 'htcondor-idle', slotAd: 'one.ad' } },
        PLAIN: { ...common, demand: 'none' },
      };
      writeFileSync(join(directory, 'queues.json'), JSON.stringify(queues));
      writeFileSync(join(directory, 'pilot.yaml'), 'command: exit 0\n');
      const settings =
        'master: { stateDir: state, factoryId: factory }\nqconf: { configFile: queues.json }\nsources: { htcondor-idle: {} }\n';
      writeFileSync(join(directory, 'thresher.yaml'), settings);
    });

    it('asks for a worker of the size and with the mark of the shape, before there is any slot ad', async () => {
      const { status, stderr } = await run('submit', 'POOL', '--shape', 'big', '--value', 'zone=mine');
      expect([status, stderr]).to.deep.equal([0, '']);
      const request = await firstRequest();
      expect(request?.requirements).to.deep.equal({ nCore: 16, minRamCount: 64_000 });
      expect(request?.payload).to.deep.include({
        env: { POOL_SHAPE: 'big' },
        values: { zone: 'mine', disk: 'ssd' },
      });
    });

    it('takes a queue with one size for the shape of its own name', async () => {
      expect((await run('submit', 'ONE', '--shape', 'ONE')).status).to.equal(0);
      expect((await firstRequest())?.payload).to.deep.include({ env: { POOL_SHAPE: 'ONE' } });
    });

    const refused: readonly (readonly [string, string, string, RegExp])[] = [
      [
        'a misspelt shape',
        'POOL',
        'bigg',
        /the queue POOL has no shape bigg; it has small, big \[request-wrong\]/,
      ],
      [
        'a queue without shapes',
        'PLAIN',
        'big',
        /the queue PLAIN of \S+ has no shapes: its demand is not htcondor-idle/,
      ],
      ['a queue that is not in the file', 'PLAN', 'big', /queues\.json has no queue PLAN \[request-wrong\]/],
    ];
    for (const [what, queue, shape, says] of refused)
      it(`refuses ${what} in one sentence, and stores nothing`, async () => {
        const { status, stderr } = await run('submit', queue, '--shape', shape);
        expect(status).to.equal(1);
        expect(stderr).to.match(says);
        expect(await firstRequest()).to.equal(undefined);
      });
  });

  const wrong: readonly (readonly [string, string[], number, string])[] = [
    [
      'a misspelt queue',
      ['CERM'],
      1,
      'there is no queue CERM, as far as the last daemon knew; did you mean CERN? [no-such-queue]',
    ],
    [
      'a strange queue',
      ['X'],
      1,
      'there is no queue X, as far as the last daemon knew; there are BAD, CERN [no-such-queue]',
    ],
    [
      'a refused queue',
      ['BAD'],
      1,
      'the queue BAD is refused, as far as the last daemon knew: maxWorkers is "3", a string [request-wrong]',
    ],
    [
      'a count of 0',
      ['CERN', '--count', '0'],
      2,
      "option '--count <n>' argument '0' is invalid. It must be a whole number from 1 to 10000. [usage]",
    ],
    [
      'a huge count',
      ['CERN', '--count', '10001'],
      2,
      "option '--count <n>' argument '10001' is invalid. It must be a whole number from 1 to 10000. [usage]",
    ],
    [
      'a missing file',
      ['CERN', '--file', 'DIR/nowhere'],
      1,
      '--file DIR/nowhere: cannot read the file: ENOENT: no such file or directory [request-wrong]',
    ],
    [
      'a directory',
      ['CERN', '--secret-file', 'DIR/state:key'],
      1,
      '--secret-file DIR/state: it is a directory, not a regular file: name a file; several fit into an archive [request-wrong]',
    ],
    [
      'a file that is too large',
      ['CERN', '--file', 'DIR/large'],
      1,
      '--file DIR/large: it has more than 1 MiB, the most that a worker gets: let the worker fetch it [request-wrong]',
    ],
    ['a file without a name', ['CERN', '--file', 'x:'], 2, '"x:" must be PATH or PATH:NAME [usage]'],
    [
      'a file with a name outside',
      ['CERN', '--file', 'DIR/thresher.yaml:../x'],
      1,
      'payload/files/0/name: the name is "../x"; no part may be "." or begin with ".." [payload-wrong]',
    ],
    [
      'a variable without "="',
      ['CERN', '--env', 'PASSWORD'],
      2,
      '--env takes NAME=VALUE, and one of them has no "=" [usage]',
    ],
    ['a variable given twice', ['CERN', '--env', 'A=1', '--env', 'A=2'], 2, '--env names A twice [usage]'],
    [
      '--follow with JSON',
      ['CERN', '--follow', '--output', 'json'],
      2,
      '--follow prints logs, and --output json does not go with it [usage]',
    ],
  ];
  for (const [what, args, expected, message] of wrong) {
    it(`with ${what} says what is right, and stores nothing`, async () => {
      writeFileSync(join(directory, 'large'), Buffer.alloc(1024 * 1024 + 1));
      const typed = args.map((one) => one.replace('DIR', directory));
      const { status, stderr } = await run('submit', ...typed);
      expect(stderr.replaceAll(directory, 'DIR')).to.equal(`thresher: ${message}\n`);
      expect(status).to.equal(expected);
      expect(await firstRequest()).to.equal(undefined);
    });
  }

  it('says where no daemon ever ran', async () => {
    writeFileSync(join(directory, 'thresher.yaml'), 'master: { stateDir: elsewhere }\n');
    const { status, stderr } = await run('submit', 'CERN');
    expect(status).to.equal(1);
    expect(stderr).to.equal(
      `thresher: no daemon ever ran on the state directory ${directory}/elsewhere [store-missing]\n`,
    );
  });
});

describe('thresher requests and withdraw', () => {
  beforeEach(async () => {
    directory = temporaryDirectory();
    await daemonRan();
  });
  afterEach(() => store.close());

  it('show why each request waits, and not what holds back others or the queue', async () => {
    const id = idOf((await run('submit', 'CERN')).stdout);
    const reason = { code: 'max-workers', message: '3 of maxWorkers 3 are alive' };
    const file = new RequestFile(stateDirAt(join(directory, 'state')), {
      clock: systemClock,
      log: recordingLog(),
      waiting: () => [{ queue: 'CERN', reasons: new Map([[id, [reason]]]) }],
    });
    file.changed();
    await file.stop();
    // The daemon knew nothing of this one.
    const other = idOf((await run('submit', 'CERN')).stdout);
    const lines = (await run('requests', '--waiting')).stdout;
    expect(lines).to.match(new RegExp(`^${other} .* no daemon runs on this state directory$`, 'm'));
    const stdout = (await run('requests')).stdout.replace(new RegExp(`^${other}.*\\n`, 'm'), '');
    expect(stdout.split('\n')[1]).to.match(
      new RegExp(
        `^${id}  CERN +waiting +1 +- .* command-line +no daemon runs .*: 3 of maxWorkers 3 are alive$`,
      ),
    );
  });

  it('show one request with its workers, and name a misspelt one', async () => {
    const id = idOf((await run('submit', 'CERN', '--count', '2', '--', 'true')).stdout);
    const origin = { kind: 'request', uid: id, index: 0 };
    await store.workers.insert([workerOf(7, { queue: 'CERN', origin })], 'pending', 1, 'submitter');
    const { stdout } = await run('requests', id);
    expect(stdout).to.match(/^state +waiting$/m);
    expect(stdout).to.match(/^workers +1 pending$/m);
    expect(stdout).to.match(/^payload +argv$/m);
    expect(stdout).to.match(/^7 +CERN +pending/m);
    const [json] = JSON.parse((await run('requests', id, '--output', 'json')).stdout) as {
      shownWorkers: { workerID: number }[];
    }[];
    expect(json?.shownWorkers.map(({ workerID }) => workerID)).to.deep.equal([7]);
    const missing = await run('requests', `${id.slice(0, -1)}_`);
    expect(missing.stderr).to.equal(
      `thresher: there is no request ${id.slice(0, -1)}_; did you mean ${id}? [no-such-request]\n`,
    );
    expect((await run('withdraw', 'x')).stderr).to.contain('there is no request x [no-such-request]');
  });

  it('take a request back before it had workers: it never gets one, and its content is gone', async () => {
    const id = idOf((await run('submit', 'CERN', '--', 'true')).stdout);
    expect((await run('withdraw', id, '--reason', 'enough')).stdout).to.equal(
      `request ${id} is withdrawn: it has no living workers\n`,
    );
    expect(await firstRequest()).to.equal(undefined);
    expect((await run('requests')).stdout).to.match(/ withdrawn .* enough$/m);
    expect((await run('withdraw', id)).stdout).to.equal(`request ${id} was withdrawn before\n`);
  });

  it('leave a request as it ended that is over', async () => {
    const id = idOf((await run('submit', 'CERN', '--', 'true')).stdout);
    const origin = { kind: 'request', uid: id, index: 0 };
    await store.workers.insert([workerOf(7, { queue: 'CERN', origin })], 'pending', 1, 'submitter');
    await store.workers.apply([{ workerId: 7, at: 2, source: 'monitor', from: 'pending', to: 'finished' }]);
    expect((await run('withdraw', id)).stdout).to.equal(`request ${id} is over: it has had its workers\n`);
    expect((await run('requests')).stdout).to.match(new RegExp(`^${id}  CERN +ended `, 'm'));
  });
});

describe('submit --wait and --follow', () => {
  beforeEach(async () => {
    directory = temporaryDirectory();
    await daemonRan();
  });
  afterEach(() => store.close());

  for (const [what, use] of [
    ['--wait', untilEnded],
    ['--follow', followRequest],
  ] as const) {
    it(`with ${what} say why a request waits, whenever that changes`, async () => {
      const id = idOf((await run('submit', 'CERN')).stdout);
      const dir = stateDirAt(join(directory, 'state'));
      const said: string[] = [];
      const err = { write: (text: string) => said.push(text) } as unknown as NodeJS.WriteStream;
      const result = readSettings(join(directory, 'thresher.yaml'));
      if (!result.ok) throw new Error('the settings are wrong');
      const opened = { store, dir, factoryId: 'factory', settings: result.settings };
      const stop = new AbortController();
      const waiting = use(id, opened, { ...realEnvironment, err }, stop.signal);
      await until('it says so', () => said.length > 0);
      const holder = { pid: process.pid, host: 'here', startedAt: 1, version: '1' };
      const lock = takeLock(dir, holder);
      const reason = { code: 'max-workers', message: '3 of maxWorkers 3 are alive' };
      writeFileSync(
        dir.requests,
        JSON.stringify([{ queue: 'CERN', groups: [{ reasons: [reason], requests: [id] }] }]),
      );
      await until('it says the next', () => said.length > 1);
      stop.abort();
      await waiting;
      lock.release();
      expect(said).to.deep.equal([
        'thresher: waiting: no daemon is running: this will be done when it starts\n',
        'thresher: waiting: 3 of maxWorkers 3 are alive\n',
      ]);
    });
  }
});

describe('the exit status of submit --wait', () => {
  const finished = { status: 'finished', exitCode: 0 } as const;
  const failed = (exitCode: number | null) => ({ status: 'failed', exitCode }) as const;
  for (const [workers, count, expected] of [
    [[finished], 1, 0],
    [[finished, failed(7), failed(3)], 3, 7],
    [[failed(null)], 1, 125],
    // Its program ended well, and the backend says that the worker did not.
    [[failed(0)], 1, 125],
    [[{ status: 'cancelled', exitCode: 143 }], 1, 125],
    [[{ status: 'missed', exitCode: null }, finished], 2, 125],
    [[finished], 2, 125],
    [[failed(200), finished], 3, 200],
  ] as const) {
    it(`is ${expected} for ${JSON.stringify(workers)} of ${count}`, () => {
      expect(exitStatusOf(workers, count)).to.equal(expected);
    });
  }
});

describe('thresher status', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
  });

  it('says that no daemon ever ran, and exits with 0', async () => {
    writeFileSync(join(directory, 'thresher.yaml'), 'master: { stateDir: state }\n');
    writeFileSync(join(directory, 'panda_queueconfig.json'), '{}');
    const { status, stdout } = await run('status');
    expect([status, stdout]).to.deep.equal([0, `daemon never ran, on ${directory}/state\n\nno troubles\n`]);
  });

  it('shows queues, waiting requests and troubles of a daemon that is down, and exits with 0', async () => {
    await daemonRan();
    await run('submit', 'CERN');
    const { status, stdout } = await run('status');
    expect(status).to.equal(0);
    expect(stdout).to.match(/^daemon stopped, on .*\n1 request waits: thresher requests --waiting\n/);
    expect(stdout).to.match(/^BAD +refused/m);
    expect(stdout).to.match(/^queue BAD: maxWorkers is "3", a string \[queue-refused\]$/m);
    const [json] = JSON.parse((await run('status', '--output', 'json')).stdout) as Record<string, unknown>[];
    expect(Object.keys(json ?? {})).to.deep.equal([
      ...['daemon', 'queues', 'services', 'credentials', 'waitingRequests', 'troubles'],
    ]);
    await store.close();
  });

  it('shows services that fail, mistakes of sources, and credentials that cannot be looked at', async () => {
    await daemonRan();
    writeFileSync(
      join(directory, 'thresher.yaml'),
      'master: { stateDir: state, factoryId: factory }\nsources: { toi: {} }\n',
    );
    const dir = stateDirAt(join(directory, 'state'));
    const failing = { code: 'loop-stuck', message: 'these loops make no progress: submit Q (70 s)' };
    writeFileSync(
      dir.services,
      JSON.stringify([{ name: 'queues', state: 'failing', since: 1, reason: failing }]),
    );
    const lock = takeLock(dir, { pid: 7, host: 'here', startedAt: 1, version: '1' });
    const { status, stdout } = await run('status');
    lock.release();
    expect(status).to.equal(0);
    expect(stdout).to.match(/^daemon running, pid 7, /);
    expect(stdout).to.match(
      /^service queues: these loops make no progress: submit Q \(70 s\) \[loop-stuck\]$/m,
    );
    expect(stdout).to.match(/^settings: .*thresher\.yaml:2 \/sources\/toi: .* \[/m);
    await store.close();
  });

  it('says of a credential that ends soon that it holds nothing back yet', async () => {
    await daemonRan();
    const day = 24 * 3600 * 1000;
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = join(directory, 'token');
    const exp = Math.round((Date.now() + day / 2) / 1000);
    writeFileSync(token, `${part({ alg: 'RS256' })}.${part({ sub: 'me', exp })}.c2ln\n`);
    chmodSync(token, 0o600);
    const manager = {
      module: 'thresher/credentials',
      name: 'FileCredManager',
      configs: { a: { files: [token] } },
    };
    writeFileSync(
      join(directory, 'thresher.yaml'),
      `master: { stateDir: state, factoryId: factory }\ncredmanager: { pluginConfigs: [${JSON.stringify(manager)}] }\n`,
    );
    const { stdout } = await run('status');
    expect(stdout).to.match(/^credential .*: it ends at .* \[credential-soon\]$/m);
    await store.close();
  });
});

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { takeLock } from '../../src/daemon/lock.ts';
import { stateDirAt } from '../../src/daemon/state-dir.ts';
import type { PandaLinkStatus } from '../../src/plugins/contracts/panda-status.ts';
import { openStore } from '../../src/store/store.ts';
import { runHere } from '../support/command-line.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const url = 'https://panda.example.org:25443/api/v1';
const minute = 60_000;

let directory: string;

const run = (...args: string[]) => runHere('--config', join(directory, 'thresher.yaml'), ...args, 'panda');

function settings(pandacon: object): void {
  const values = { master: { stateDir: 'state', factoryId: 'factory', harvester_id: 'cern-1' }, pandacon };
  writeFileSync(join(directory, 'thresher.yaml'), JSON.stringify(values));
  writeFileSync(join(directory, 'panda_queueconfig.json'), '{}');
}

/** What a token says, without a signature that anyone checks here. */
function token(subject: string, exp: number): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256' })}.${part({ sub: subject, iss: 'https://iam', exp })}.c2ln`;
}

const oidc = {
  server_api_url_ssl: url,
  auth_type: 'oidc',
  auth_token: 'file:token',
  auth_origin: 'vo.production',
};

function write(status: PandaLinkStatus): void {
  mkdirSync(join(directory, 'state/panda'), { recursive: true });
  writeFileSync(join(directory, 'state/panda/status.json'), JSON.stringify(status));
}

const statusAt = (now: number): PandaLinkStatus => ({
  writtenAt: now - 1000,
  url,
  harvesterId: 'cern-1',
  startedAt: now - 60 * minute,
  lastAnswers: { heartbeat: now - 4 * minute, commands: now - 3000 },
  failures: [
    {
      call: 'acknowledge',
      since: now - 10 * minute,
      code: 'panda-role',
      message: 'production or pilot role\nrequired',
    },
  ],
  commands: [
    { at: now - minute, id: 18, command: 'KILL_WORKERS', outcome: '2 workers are to end' },
    { at: now - 2 * minute, id: 17, command: 'SET_N_WORKERS_JOBTYPE:SITE', outcome: '3 of 4 new workers' },
  ],
  sites: [
    {
      site: 'SITE',
      queues: ['SITE'],
      statisticsAt: now - minute,
      order: {
        createdAt: now - 2 * minute,
        takenAt: now - 2 * minute,
        said: { SCORE: 3, MCORE: 1, Undefined: 0 },
        wanted: { SCORE: 2, MCORE: 1 },
        rest: 1,
      },
    },
    {
      site: 'ZERO',
      queues: ['ZERO'],
      order: { createdAt: now, takenAt: now, said: { SCORE: 0 }, wanted: {}, rest: 0 },
    },
    { site: 'SELF', queues: ['SELF/a', 'SELF/b'], jobs: { activated: 7, at: now } },
  ],
  reports: { lastTaken: now - 5000, taken: 12, refused: [4, 5] },
});

/** Lines with the times left out. */
const shown = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replace(/ {2,}/g, '  '));

describe('thresher panda', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
    settings(oidc);
    const inTwoHours = Math.round(Date.now() / 1000) + 3 * 3600 + 30;
    writeFileSync(join(directory, 'token'), token('pilots', inTwoHours), { mode: 0o600 });
  });

  it('says where the settings name no server', async () => {
    settings({});
    const { status, stdout } = await run();
    expect([status, stdout]).to.deep.equal([
      0,
      'the settings name no PanDA server with a login: pandacon, and docs/panda.md\n',
    ]);
  });

  it('says why the link is off', async () => {
    settings({ ...oidc, auth_type: 'kerberos' });
    const { status, stdout } = await run();
    expect(status).to.equal(1);
    expect(stdout.trimEnd().split('\n').at(-1)).to.equal(
      'the link is off: see the problem of pandacon, and docs/panda.md',
    );
    expect(stdout).to.match(
      /:1 \/pandacon\/auth_type: error: the link to the PanDA server is off: auth_type is "kerberos"; write x509 or oidc \[wrong-type\]\n/,
    );
  });

  it('shows the server and its login before any daemon ran', async () => {
    const { stdout } = await run();
    expect(shown(stdout)).to.deep.equal([
      `server  ${url}`,
      `login  oidc, ${directory}/token, pilots, ends TIME (in 3 h)`,
      'link  it never ran: no daemon runs',
    ]);
  });

  it('shows a login that has ended, and one that cannot be read', async () => {
    writeFileSync(join(directory, 'token'), token('pilots', Math.round(Date.now() / 1000) - 30));
    expect((await run()).stdout).to.match(/login .* \(3\d s ago\), it has ended\n/);
    settings({ ...oidc, auth_token: 'file:none' });
    expect((await run()).stdout).to.match(/login +oidc, \S+none, .*none/);
  });

  it('names a certificate as missing where the login is by certificate', async () => {
    writeFileSync(join(directory, 'cert'), 'garbage', { mode: 0o600 });
    settings({ server_api_url_ssl: url, cert_file: 'cert' });
    expect((await run()).stdout).to.match(/login +x509, \S+cert, \S+cert has no certificate in PEM/);
  });

  it('shows a token of the settings without the token', async () => {
    const secret = token('pilots', Math.round(Date.now() / 1000) + 600);
    settings({ ...oidc, auth_token: secret });
    const { stdout } = await run();
    expect(stdout).to.match(/login +oidc, a token in the settings, pilots, ends /);
    for (const output of [stdout, (await run('--output', 'json')).stdout])
      expect(output).to.not.contain(secret.slice(-20));
  });

  describe('once a daemon ran', () => {
    beforeEach(async () => {
      mkdirSync(join(directory, 'state'), { mode: 0o700 });
      writeFileSync(join(directory, 'state/factory'), 'factory\n');
      const store = await openStore(join(directory, 'state/thresher.db'), 'factory');
      store.news.listen(new Set(['panda', 'toy']));
      const ordered = workerOf(1, { origin: { kind: 'panda', uid: 'SITE#17', index: 0 } });
      const other = workerOf(2, { origin: { kind: 'toy', uid: 'x', index: 0 } });
      await store.workers.insert([ordered, other], 'pending', Date.now() - 5 * minute, 'submitter');
      await store.close();
    });

    const tables = [
      '',
      'acknowledge fails since TIME: production or pilot role required [panda-role]',
      '  With x509 use a proxy with `/Role=production`; with tokens set `auth_origin` to `VO.production` and have the client put into that group.',
      '',
      'SITE  QUEUES  STATISTICS  ORDER OF  SAID  WANTED  REST  JOBS',
      'SITE  SITE  TIME  TIME  3 SCORE, 1 MCORE  2 SCORE, 1 MCORE  1  -',
      'ZERO  ZERO  -  TIME  0  0  0  -',
      'SELF  SELF/a, SELF/b  -  -  -  -  -  7',
      '',
      'TIME  ID  COMMAND  OUTCOME',
      'TIME  18  KILL_WORKERS  2 workers are to end',
      'TIME  17  SET_N_WORKERS_JOBTYPE:SITE  3 of 4 new workers',
    ];
    const head = [
      `server  ${url}`,
      'login',
      'link',
      'answers  heartbeat 4 min ago, commands 3 s ago',
      'reports  12 taken since the start, the last one 5 s ago; the server refuses those of the workers 4, 5',
      'outbox  1 change waits, the oldest came 5 min ago',
    ];

    for (const isRunning of [true, false]) {
      it(`shows all of the link ${isRunning ? 'that runs' : 'as it was, and that no daemon runs'}`, async () => {
        const now = Date.now();
        write(statusAt(now));
        const holder = { pid: 1, host: 'h', startedAt: 1, version: '1' };
        const lock = isRunning ? takeLock(stateDirAt(join(directory, 'state')), holder) : undefined;
        try {
          const { stdout } = await run();
          const lines = shown(stdout).map((line) => line.replace(/^login .*/, 'login'));
          const link = isRunning
            ? 'link  as cern-1, ready, since TIME; as of TIME (1 s ago)'
            : 'link  as cern-1, ready, no daemon runs; as of TIME (1 s ago)';
          // The command itself may take a second.
          const near = (line: string) => line.replace(/\b\d+ s ago/g, 'N s ago');
          expect(lines.map(near)).to.deep.equal(
            [...head.map((line) => (line === 'link' ? link : line)), ...tables].map(near),
          );
        } finally {
          lock?.release();
        }
      });
    }

    it('shows the same as JSON, with times that programs read', async () => {
      const now = Date.now();
      write({ ...statusAt(now), starting: 'its worker ids are not known yet' });
      const { stdout } = await run('--output', 'json');
      const [view] = JSON.parse(stdout) as [
        {
          server: string;
          daemonRuns: boolean;
          link: { at: string; starting: string; sites: readonly { order: object | null }[] };
          outbox: { waiting: number };
        },
      ];
      expect(view.server).to.equal(url);
      expect(view.daemonRuns).to.equal(false);
      expect(view.outbox.waiting).to.equal(1);
      expect(view.link.at).to.equal(new Date(now - 1000).toISOString());
      expect(view.link.starting).to.equal('its worker ids are not known yet');
      expect(view.link.sites[0]?.order).to.include({ rest: 1 });
    });

    for (const [what, text] of [
      ['half a file', '{"writtenAt": 1, "url"'],
      ['another form', '{"writtenAt": 1, "url": "x", "failures": 7}'],
      ['no object', 'null'],
    ] as const) {
      it(`goes without a state of ${what}`, async () => {
        mkdirSync(join(directory, 'state/panda'));
        writeFileSync(join(directory, 'state/panda/status.json'), text);
        expect(shown((await run()).stdout)).to.deep.include('link  it never ran: no daemon runs');
      });
    }

    it('shows the last link after its server left the settings', async () => {
      write(statusAt(Date.now()));
      settings({});
      expect(shown((await run()).stdout)[0]).to.equal(`server  none in the settings; it was ${url}`);
    });
  });
});

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { rememberSecret } from '../../src/util/own-secrets.ts';
import { runHere } from '../support/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

interface Wrong {
  readonly args: readonly string[];
  readonly says: RegExp;
  /** 2: wrong use of the command line. */
  readonly status: 1 | 2;
}

const wrong = (status: Wrong['status'], says: RegExp, ...args: string[]): Wrong => ({ args, says, status });

describe('thresher pool token', () => {
  let root: string;
  let pool: string;
  const at = (name: string) => join(root, name);

  before(async () => {
    root = temporaryDirectory();
    pool = at('pool');
    const { status, stderr } = await runHere(
      'pool',
      'init',
      '--directory',
      pool,
      '--trust-domain',
      'pool.test',
    );
    expect(status, stderr).to.equal(0);
    writeFileSync(at('open-key'), 'k'.repeat(64), { mode: 0o644 });
    chmodSync(at('open-key'), 0o644);
    writeFileSync(at('short-key'), 'short', { mode: 0o600 });
    writeFileSync(at('there'), 'kept', { mode: 0o600 });
  });

  function claimsOf(token: string) {
    const [header = '', claims = ''] = token.split('.');
    const read = (part: string) =>
      JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
    return { ...read(header), ...read(claims) };
  }

  it('prints a token that names the domain of the pool, with the authorizations of a worker and a day to live', async () => {
    // Tokens of one pool have one head: a command that knows one hides such a head elsewhere.
    const other = await runHere('pool', 'token', 'worker', '--directory', pool, '--print');
    rememberSecret(other.stdout.trim());
    const { stdout, status } = await runHere('pool', 'token', 'worker', '--directory', pool, '--print');
    expect(status).to.equal(0);
    const claims = claimsOf(stdout.trim());
    expect(claims).to.include({ iss: 'pool.test', sub: 'worker@pool.test', kid: 'POOL' });
    expect(claims).to.include({ scope: 'condor:/READ condor:/ADVERTISE_MASTER condor:/ADVERTISE_STARTD' });
    expect(Number(claims['exp']) - Number(claims['iat'])).to.equal(86_400);
  });

  it('writes a file that its owner alone can read, and says all but the token', async () => {
    const file = at('alice.token');
    const limits = ['--authorization', 'read,WRITE', '--lifetime', '30d'];
    const { stdout } = await runHere('pool', 'token', 'alice', '--directory', pool, ...limits, '--out', file);
    expect(stdout).to.match(/alice\.token: a token of alice@pool\.test until \d{4}-.*Z, for READ, WRITE\n$/);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(stdout).not.to.contain(readFileSync(file, 'utf8').trim());
  });

  const cases = (): readonly Wrong[] => [
    wrong(2, /missing required argument 'identity'/),
    wrong(2, /a token is a secret: say where it goes, by --out FILE or by --print/, 'worker'),
    wrong(2, /say where it goes/, 'worker', '--print', '--out', at('x')),
    wrong(
      2,
      /'--lifetime.*must be a duration of a second or more, such as 90s/,
      'worker',
      '--print',
      '--lifetime',
      'soon',
    ),
    wrong(2, /must be a duration of a second or more/, 'worker', '--print', '--lifetime', '-5m'),
    wrong(2, /must be a duration of a second or more/, 'worker', '--print', '--lifetime', '0'),
    wrong(2, /SUBMIT is none of READ, WRITE/, 'worker', '--print', '--authorization', 'READ,SUBMIT'),
    wrong(1, /the identity is "a b"; it must be USER or USER@DOMAIN, such as worker@/, 'a b', '--print'),
    wrong(1, /the identity is "@pool"; it must be/, '@pool', '--print'),
    wrong(
      1,
      /signing key .*nowhere cannot be used: it is not there: `thresher pool init` makes one/,
      'worker',
      '--print',
      '--key',
      at('nowhere'),
    ),
    wrong(
      1,
      /open-key cannot be used: others than its owner may read it: chmod 600/,
      'worker',
      '--print',
      '--key',
      at('open-key'),
    ),
    wrong(1, /short-key cannot be used: it has 5 bytes/, 'worker', '--print', '--key', at('short-key')),
    wrong(1, /it is a directory: name the file in it/, 'worker', '--print', '--key', pool),
    wrong(1, /there cannot be written: it is there already: .*--force/, 'worker', '--out', at('there')),
    wrong(1, /none\/x cannot be written: ENOENT/, 'worker', '--out', at('none/x')),
  ];

  it('refuses each wrong use in a sentence, with the status of its kind, and writes nothing', async () => {
    for (const { args, says, status } of cases()) {
      const directory = args.includes('--key') ? [] : ['--directory', pool];
      const said = await runHere('pool', 'token', ...args, ...directory);
      expect(said.stderr, args.join(' ')).to.match(says);
      expect(said.stderr.trimEnd().split('\n').length, args.join(' ')).to.equal(1);
      expect([said.status, said.stdout], args.join(' ')).to.deep.equal([status, '']);
    }
    expect(readFileSync(at('there'), 'utf8')).to.equal('kept');
    expect(existsSync(at('x'))).to.equal(false);
  });

  it('replaces a file with --force, and follows a link to the key as a Secret volume has it', async () => {
    symlinkSync(join(pool, 'signing-key'), at('link'));
    const key = ['--key', at('link'), '--trust-domain', 'pool.test'];
    const { status } = await runHere('pool', 'token', 'worker', ...key, '--out', at('there'), '--force');
    expect(status).to.equal(0);
    expect(claimsOf(readFileSync(at('there'), 'utf8').trim())).to.include({ sub: 'worker@pool.test' });
  });
});

describe('wrong uses of thresher pool', () => {
  const table: Readonly<Record<string, readonly Wrong[]>> = {
    scale: [
      wrong(2, /missing required argument 'workers'/),
      wrong(2, /'workers'.*must be a number of workers, a whole number from 0/, 'many'),
      wrong(2, /must be a number of workers/, '1.5'),
      wrong(2, /must be a number of workers|unknown option/, '-1'),
      wrong(2, /must be a number of workers/, '1000000'),
      wrong(2, /'--timeout.*must be a duration, such as 90s/, '1', '--timeout', 'long'),
      wrong(2, /too many arguments/, '1', '2'),
      wrong(2, /unknown option '--replicas'/, '--replicas', '2'),
      wrong(
        1,
        /nowhere.*kubeconfig|kubeconfig.*nowhere/i,
        '1',
        '--condor-pool',
        '127.0.0.1:1',
        '--kubeconfig',
        '/nowhere',
      ),
      wrong(1, /settings.*\/nowhere\.yaml|\/nowhere\.yaml/, '1', '--config', '/nowhere.yaml'),
    ],
    learn: [
      wrong(2, /name the queue of a worker, or a startd by --startd NAME: one of the two/),
      wrong(2, /one of the two/, 'Q', '--startd', 'vm'),
      wrong(2, /too many arguments/, 'Q', 'R'),
      wrong(2, /argument missing/, 'Q', '--out'),
      wrong(2, /argument missing/, '--startd'),
      wrong(2, /a name has one line/, 'Q\nR'),
      wrong(2, /unknown option '--queue'/, '--queue', 'Q'),
      wrong(1, /\/nowhere\.yaml/, 'Q', '--config', '/nowhere.yaml'),
      wrong(
        1,
        /condor_status .*127\.0\.0\.1:1.*|condor_status was not found|condor_status.*not found/,
        'Q',
        '--condor-pool',
        '127.0.0.1:1',
      ),
      wrong(1, /condor_status/, '--startd', 'x"y', '--condor-pool', '127.0.0.1:1'),
    ],
    status: [
      wrong(2, /too many arguments/, 'now'),
      wrong(2, /'xml' is invalid.*table, json/, '--output', 'xml'),
      wrong(2, /argument missing/, '--condor-pool'),
      wrong(2, /unknown option '--pool'/, '--pool', 'x'),
      wrong(1, /\/nowhere\.yaml/, '--config', '/nowhere.yaml'),
      wrong(1, /condor_status/, '--condor-pool', '127.0.0.1:1'),
      wrong(1, /condor_status/, '--condor-pool', 'no such host'),
      wrong(1, /condor_status/, '--condor-pool', '127.0.0.1:1', '--condor-config', '/nowhere'),
      wrong(1, /condor_status/, '--condor-pool', '127.0.0.1:1', '--token-directory', '/nowhere'),
      wrong(1, /condor_status/, '--condor-pool', '127.0.0.1:99999'),
    ],
    unservable: [
      wrong(2, /too many arguments/, 'Q'),
      wrong(2, /'xml' is invalid/, '--output', 'xml'),
      wrong(2, /unknown option '--condor-pool'/, '--condor-pool', 'x'),
      wrong(1, /\/nowhere\.yaml/, '--config', '/nowhere.yaml'),
    ],
  };

  for (const [name, cases] of Object.entries(table))
    it(`${name}: each gets a sentence of its own, and the status of its kind`, async () => {
      for (const { args, says, status } of cases) {
        const said = await runHere('pool', name, ...args);
        expect(said.stderr, `${name} ${args.join(' ')}`).to.match(says);
        expect(said.stderr, args.join(' ')).to.match(/^thresher: /);
        expect([said.status, said.stdout], args.join(' ')).to.deep.equal([status, '']);
      }
    });

  it('unservable: a mistake in the settings, no queue of this demand, and a wrong option each get a sentence', async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'state'));
    const settings = join(directory, 'thresher.yaml');
    const write = (text: string) => {
      writeFileSync(settings, `master: { stateDir: state }\nqconf: { configFile: queues.json }\n${text}`);
    };
    const queues = (value: object) => {
      writeFileSync(join(directory, 'queues.json'), JSON.stringify(value));
    };
    const local = {
      mapType: 'NoJob',
      submitter: { name: 'LocalSubmitter', module: 'thresher/local', templateFile: 'pilot.yaml' },
      monitor: { name: 'LocalMonitor', module: 'thresher/local' },
      sweeper: { name: 'LocalSweeper', module: 'thresher/local' },
    };
    const ask = () => runHere('--config', settings, 'pool', 'unservable');
    writeFileSync(join(directory, 'pilot.yaml'), 'command: exit 0\n');

    write('');
    queues({ Q: { ...local, demand: 'none' } });
    const none = await ask();
    expect(none.stderr).to.match(
      /no queue of .*queues\.json has "demand": \{"name": "htcondor-idle", \.\.\.\}.*\[pool-demand\]/,
    );
    expect(none.status).to.equal(1);

    queues({ Q: { ...local, demand: { name: 'htcondor-idle', slotAd: 5 } } });
    expect((await ask()).stderr).to.match(
      /no queue with the demand htcondor-idle is ready: see `thresher check-config Q`/,
    );

    queues({ Q: { ...local, demand: { name: 'htcondor-idle', slotAd: 'q.ad' } } });
    write('sources: { htcondor-idle: { interval: often } }\n');
    expect((await ask()).stderr).to.match(/is ready: see `thresher check-config Q`/);

    writeFileSync(settings, 'master: { stateDir: [] }\n');
    expect((await ask()).status).to.equal(1);
  });
});

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { condorEnvironment, toolEnvironment } from '../../../src/clients/credentials/environment.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { runTool, type ToolCall } from '../../../src/clients/credentials/tool.ts';
import { systemClock } from '../../../src/util/clock.ts';
import type { ThresherError } from '../../../src/worker/errors.ts';
import { recordOf } from '../../env/kubernetes/processes.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const environment = { PATH: process.env['PATH'] ?? '' };

function run(command: string, args: readonly string[], more: Partial<ToolCall> = {}): Promise<string> {
  const { signal } = new AbortController();
  return runTool({ command, args, environment, timeLimit: 60_000, clock: systemClock, signal, ...more });
}

const sh = (script: string, more: Partial<ToolCall> = {}) => run('sh', ['-c', script], more);

async function complaint(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    expect((error as ThresherError).code).to.equal('credential-tool');
    return (error as Error).message;
  }
  throw new Error('it succeeded');
}

describe('a program that makes a credential', () => {
  it('gets its arguments as they are, its input, and no environment but what is given', async () => {
    expect(await run('printf', ['%s|', '$(id)', '; false', '*'])).to.equal('$(id)|; false|*|');
    expect(await run('cat', [], { input: 'secret\n' })).to.equal('secret\n');
    process.env['THRESHER_TEST_SECRET'] = 'geheim';
    try {
      // Node adds one of its own where coverage is measured.
      const given = (await run('/usr/bin/env', [])).replace(/^NODE_V8_COVERAGE=.*\n/m, '');
      expect(given).to.equal(`PATH=${environment.PATH}\n`);
    } finally {
      delete process.env['THRESHER_TEST_SECRET'];
    }
  });

  it('finds the end of its input where it asks for a password', async () => {
    expect(await sh('read line || echo nothing')).to.equal('nothing\n');
  });

  it('an error about a program that makes a credential has its last words', async () => {
    expect(await complaint(run('no-such-tool', []))).to.equal(
      'no-such-tool was not found: install it, or name it with its path',
    );
    const file = join(temporaryDirectory(), 'tool');
    writeFileSync(file, 'no program');
    expect(await complaint(run(file, []))).to.equal(`${file} may not be executed`);
    expect(await complaint(sh('echo one; echo two >&2; exit 7'))).to.equal(
      'sh ended with exit status 7: two',
    );
    expect(await complaint(sh('echo one; exit 1'))).to.equal('sh ended with exit status 1: one');
    expect(await complaint(sh('exit 1'))).to.equal('sh ended with exit status 1');
    expect(await complaint(sh('kill -9 $$'))).to.equal('sh was ended by SIGKILL');
    const chatter = 'echo ....+...+.; for i in 1 2 3 4 5; do echo line $i; done; echo ...; exit 1';
    expect(await complaint(sh(`(${chatter}) >&2`))).to.equal(
      'sh ended with exit status 1: line 3; line 4; line 5',
    );
    const long = await complaint(sh('yes word | head -c 900 | tr "\\n" " " >&2; exit 1'));
    expect(long.length).to.be.below(300);
  });

  it('does not give away what it says of keys, tokens and passwords', async () => {
    const said = [
      'bad password geheim1',
      'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ',
      'token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl is bad',
    ].join('\n');
    const message = await complaint(
      run('sh', ['-c', 'cat >/dev/null; printf "%s\\n" "$1" >&2; exit 1', 'sh', said], {
        input: 'other\n',
        secrets: ['geheim1'],
      }),
    );
    expect(message).to.equal(
      'sh ended with exit status 1: bad password (hidden); (hidden); token (hidden) is bad',
    );
    const more = [
      '/IEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDLkq',
      'cannot parse MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwgg',
      'client_secret=my%20p%C3%A4ss%2Bword and my+p%C3%A4ss%2Bword',
      'cannot open /usr/share/a-file-that-is-not-there-at-all',
      'unable to access trusted certificates in: x509-trusted-ca-directory',
    ];
    const each = more.map((line) =>
      complaint(
        run('sh', ['-c', 'cat >/dev/null; printf "%s\\n" "$1" >&2; exit 1', 'sh', line], {
          input: 'other\n',
          secrets: ['my päss+word'],
        }),
      ),
    );
    expect((await Promise.all(each)).map((text) => text.replace(/^.* status 1: /, ''))).to.deep.equal([
      ...['(hidden)', 'cannot parse (hidden)', 'client_secret=(hidden) and (hidden)'],
      ...[more[3], more[4]],
    ]);
    rememberSecret('3f2b1c4d-0000-4a1b-9c9d-0123456789ab');
    const outside = 'bad token 3f2b1c4d-0000-4a1b-9c9d-0123456789ab, password=hunter2xyz, Bearer abc123def';
    const repeated = await complaint(sh(`echo '${outside}'; exit 1`));
    for (const secret of ['3f2b1c4d', 'hunter2xyz', 'abc123def']) expect(repeated).to.not.contain(secret);
    const echoed = complaint(sh('read line; echo "wrong: $line" >&2; exit 1', { input: 'my password\n' }));
    expect(await echoed).to.equal('sh ended with exit status 1: wrong: (hidden)');
  });

  it('hole 3: shows no line of a key, the short last one neither', async () => {
    const key =
      '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nAbCd12==\n-----END PRIVATE KEY-----';
    const said = await complaint(sh(`printf '%s\\n' 'got this:' '${key}' 'which is none' >&2; exit 1`));
    expect(said).to.equal('sh ended with exit status 1: got this:; (hidden); which is none');
  });

  it('is killed at its limit with everything it started', async () => {
    const clock = new ManualClock();
    const pidFile = join(temporaryDirectory(), 'pid');
    const script = `sleep 1000 & echo $! >${pidFile}.new; mv ${pidFile}.new ${pidFile}; echo waiting >&2; wait`;
    const call = complaint(sh(script, { clock, timeLimit: 30_000 }));
    await until('it has begun', () => existsSync(pidFile));
    await clock.advance(29_999);
    const child = recordOf(Number(readFileSync(pidFile, 'utf8')));
    expect(child).to.not.equal(undefined);
    await clock.advance(1);
    expect(await call).to.match(/^sh did not end within 30 s and was killed(: waiting)?$/);
    await until('its child is gone', () => recordOf(child?.pid ?? 0) === undefined);
  });

  it('is ended when the daemon gives it up, and not started afterwards', async () => {
    const abort = new AbortController();
    const call = complaint(sh('sleep 1000', { signal: abort.signal }));
    abort.abort();
    expect(await call).to.match(/the daemon gave it up/);
    expect(await complaint(sh('true', { signal: abort.signal }))).to.contain('was not started');
  });

  it('a program that leaves a child behind which holds its output blocks no caller', async () => {
    expect(await sh('sleep 1000 & echo done')).to.equal('done\n');
  });

  it('cannot fill the memory', async () => {
    expect(await complaint(run('yes', []))).to.equal('yes wrote more than 64 kB and was killed');
    expect(await complaint(sh('yes | head -c 3000000 >&2; exit 3'))).to.match(/exit status 3/);
  });

  it('is not in the way of one that reads none of its input', async () => {
    expect(await sh('exec <&-; echo ok', { input: 'x'.repeat(1_000_000) })).to.equal('ok\n');
  });
});

describe('the environment of such a program', () => {
  it('c17: has all that HTCondor reads where it is one of HTCondor, but for what is a secret', () => {
    const read = {
      _condor_COLLECTOR_HOST: 'pool',
      '_CONDOR_SCHEDD.SEC_DEFAULT_AUTHENTICATION': 'REQUIRED',
      _CONDOR_X509_2: 'x',
      _CONDOR_SEC_PASSWORD_FILE: '/etc/condor/pool_password',
      _CONDOR_SEC_PASSWORD_DIRECTORY: '/etc/condor/passwords.d',
      _CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY: '/etc/condor/tokens.d',
      _CONDOR_SEC_TOKEN_POOL_SIGNING_KEY_FILE: '/etc/condor/key',
      _CONDOR_SEC_TOKEN_ISSUER_ALLOWED: 'true',
      BEARER_TOKEN_FILE: '/run/token',
      XDG_RUNTIME_DIR: '/run/user/7',
      X509_USER_PROXY: '/tmp/x509up_u7',
    };
    const secret = {
      BEARER_TOKEN: 'eyJ',
      _CONDOR_API_TOKEN: 'abc',
      _condor_my_password: 'word',
      AWS_KEY: '/x',
    };
    expect(condorEnvironment({ ...read, ...secret, PATH: '/bin' })).to.deep.equal({ ...read, PATH: '/bin' });
    expect(Object.keys(toolEnvironment(read))).to.not.include('X509_USER_PROXY');
  });

  it('has what it needs to find its libraries and servers, and none of the daemon’s secrets', () => {
    const own = {
      PATH: '/bin',
      HOME: '/h',
      X509_CERT_DIR: '/c',
      KRB5_CONFIG: '/k',
      LC_ALL: 'C',
      TZ: undefined,
      THRESHER_TOKEN: 'x',
      AWS_SECRET_ACCESS_KEY: 'x',
      X509_USER_KEY: '/x',
      NODE_OPTIONS: '-x',
      _CONDOR_COLLECTOR_HOST: 'pool',
      _CONDOR_SEC_PASSWORD_FILE: '/x',
      _CONDOR_SCITOKENS_FILE: '/t',
      KRB5CCNAME: '/x',
    };
    expect(toolEnvironment(own)).to.deep.equal({
      PATH: '/bin',
      HOME: '/h',
      X509_CERT_DIR: '/c',
      KRB5_CONFIG: '/k',
      LC_ALL: 'C',
      _CONDOR_COLLECTOR_HOST: 'pool',
      _CONDOR_SCITOKENS_FILE: '/t',
    });
  });
});

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { mintToken, newSigningKey, passwordFile } from '../../src/clients/htcondor/idtoken.ts';
import { condorPool, type Pool } from '../support/htcondor.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const run = promisify(execFile);

interface Said {
  readonly ok: boolean;
  readonly text: string;
}

describe("tokens that thresher signs without HTCondor's tools", () => {
  let pool: Pool;
  let key: Buffer;

  before(async () => {
    pool = await condorPool();
    key = readFileSync(join(pool.directory, 'keys/POOL'));
  });

  const wishes = {
    issuer: 'pool.test',
    identity: 'worker@pool.test',
    authorizations: ['READ', 'ADVERTISE_STARTD'],
    lifetime: 3600,
  };

  /** Asks the collector for a right, with this token alone. */
  async function ping(token: string, right: string): Promise<Said> {
    const directory = join(temporaryDirectory(), 'tokens');
    mkdirSync(directory, { mode: 0o700 });
    writeFileSync(join(directory, 'token'), token, { mode: 0o600 });
    const env = {
      ...process.env,
      CONDOR_CONFIG: pool.remote.config,
      _CONDOR_SEC_TOKEN_DIRECTORY: directory,
      _CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY: directory,
      _CONDOR_SEC_PASSWORD_DIRECTORY: directory,
      _CONDOR_SEC_TOKEN_POOL_SIGNING_KEY_FILE: join(directory, 'none'),
      _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS: 'IDTOKENS',
    };
    const args = ['-type', 'COLLECTOR', '-pool', pool.pool, '-verbose', right];
    try {
      const { stdout } = await run(join(pool.programs, 'condor_ping'), args, { env, timeout: 30_000 });
      return { ok: true, text: stdout };
    } catch (error) {
      const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
      return { ok: false, text: stdout + stderr };
    }
  }

  it('a real collector takes a token for the identity in it', async () => {
    const { ok, text } = await ping(mintToken({ ...wishes, key, now: Date.now() }), 'READ');
    expect(ok, text).to.equal(true);
    expect(text).to.include('worker@pool.test').and.to.include('IDTOKENS');
  });

  it('a right that is not in a token is refused', async () => {
    const { ok, text } = await ping(mintToken({ ...wishes, key, now: Date.now() }), 'WRITE');
    expect(ok, text).to.equal(false);
  });

  it('a token of another key is refused', async () => {
    const other = mintToken({ ...wishes, key: newSigningKey(), now: Date.now() });
    expect((await ping(other, 'READ')).ok).to.equal(false);
  });

  it('a token is refused after its end', async () => {
    const old = mintToken({ ...wishes, key, now: Date.now() - 3_700_000 });
    expect((await ping(old, 'READ')).ok).to.equal(false);
  });

  it('a pool password has the form that condor_store_cred gives it', async () => {
    const file = join(temporaryDirectory(), 'password');
    const program = join(pool.programs, '../sbin/condor_store_cred');
    await run(program, ['-p', 'of the seed', '-f', file], {
      env: { ...process.env, CONDOR_CONFIG: pool.remote.config },
    });
    expect(passwordFile('of the seed').equals(readFileSync(file))).to.equal(true);
  });
});

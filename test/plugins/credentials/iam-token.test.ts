import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { judgeOne } from '../../../src/agents/credentials/credential-board.ts';
import { readToken } from '../../../src/clients/credentials/jwt.ts';
import { IamTokenCredManager } from '../../../src/plugins/credentials/iam-token/index.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { fromOutside, holdsOwn } from '../../../src/util/own-secrets.ts';
import { freePort } from '../../env/kubernetes/ports.ts';
import {
  inspected,
  makeManager,
  mistakes,
  renewed,
  renewing,
  warnings,
} from '../../support/credential-manager.ts';
import { anyTimes, makeJwt, ordinaryWords } from '../../support/credentials.ts';
import { rejection } from '../../support/kubernetes-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { type Issuer, startIssuer } from '../../support/token-issuer.ts';

const hour = 3_600_000;
const clientSecret = 'the secret of the client';
const md5 = (text: string) => createHash('md5').update(text).digest('hex');
const ce = 'ce.example.org:9619';

describe('IamTokenCredManager', () => {
  let issuer: Issuer;
  let configDir: string;
  let out: string;

  before(async () => {
    issuer = await startIssuer();
  });
  after(() => issuer.stop());

  beforeEach(() => {
    configDir = temporaryDirectory();
    out = join(configDir, 'tokens');
    mkdirSync(out);
    issuer.requests.length = 0;
    issuer.headers.length = 0;
    issuer.looks = 0;
    issuer.claims = () => ({});
    issuer.answer = undefined;
    writeClient({ issuer: issuer.url, client_id: 'harvester', client_secret: clientSecret });
  });

  function writeClient(content: unknown): void {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    writeFileSync(join(configDir, 'client.json'), text, { mode: 0o600 });
  }

  const options = (more: object = {}) => ({
    client_cred_file: 'client.json',
    out_dir: 'tokens',
    target_type: 'ce',
    ca_file: issuer.ca,
    target_list: [ce],
    ...more,
  });
  const manager = (more: object = {}, clock?: Clock) =>
    makeManager(IamTokenCredManager, options(more), { configDir, ...(clock && { clock }) });
  const token = (endpoint: string) => readFileSync(join(out, md5(endpoint)), 'utf8');

  it('gets a token for a computing element into the file that submitters look for', async () => {
    const own = manager();
    const path = join(out, md5(ce));
    expect(await renewing(own)).to.deep.equal([{ kind: 'renewed', name: path }]);
    expect(issuer.requests).to.deep.equal([
      {
        grant_type: 'client_credentials',
        client_id: 'harvester',
        client_secret: clientSecret,
        audience: ce,
        scope: 'compute.read compute.modify compute.create compute.cancel',
      },
    ]);
    expect(readToken(token(ce), 'x')).to.deep.include({ subject: 'robot', audience: [ce] });
    expect(statSync(path).mode & 0o777).to.equal(0o600);
    const [state] = await inspected(own);
    expect(state).to.deep.nested.include({ 'facts.name': path, 'facts.kind': 'token', warnings: [] });
    expect(readdirSync(out)).to.deep.equal([md5(ce)]);
  });

  it('hole 8: takes no answer that no issuer gives by its size', async () => {
    const large = { access_token: 'a', token_type: 'bearer', more: 'x'.repeat(2_000_000) };
    const many = { ...large, more: Array.from({ length: 20_000 }, () => 1) };
    for (const body of [large, many]) {
      issuer.answer = () => ({ statusCode: 200, body });
      const [said = ''] = await renewed(manager());
      expect(said).to.match(/^credential-issuer: token issuer \S+ gave an answer that is too large$/);
    }
    for (const [access_token, why] of [
      ['a'.repeat(16_385), /gave a token of more than 16384 characters$/],
      ['a\nb c', /its token has characters that no request may have$/],
    ] as const) {
      issuer.answer = () => ({ statusCode: 200, body: { access_token, token_type: 'bearer' } });
      expect((await renewed(manager()))[0]).to.match(why);
    }
    expect(readdirSync(out)).to.deep.equal([]);
  });

  it('asks for the audience that each kind of computing element wants', async () => {
    writeFileSync(join(configDir, 'list'), '\n# more\nother.example.org:9619  \nce.example.org:9619\n');
    const target_list = [
      ce,
      { endpoint: 'condor.example.org', ce_flavour: 'HTCONDOR-CE' },
      { endpoint: 'gsiftp://arc.example.org:2811', ce_flavour: 'ARC-CE' },
      { endpoint: 'arc2.example.org', ce_flavour: 'arc-ce' },
      { endpoint: 'arc3.example.org:8443', ce_flavour: 'arc-ce' },
      { endpoint: 'own.example.org', audience: 'own', scope: 'compute.read' },
    ];
    const outcomes = await renewed(manager({ target_list, target_list_file: 'list' }));
    expect(outcomes).to.deep.equal(Array.from({ length: 7 }, () => 'renewed'));
    const audience = (endpoint: string) => readToken(token(endpoint), endpoint).audience[0];
    expect(audience('condor.example.org:9619')).to.equal('condor.example.org:9619');
    expect(audience('arc.example.org:443')).to.equal('https://arc.example.org');
    expect(audience('arc2.example.org:443')).to.equal('https://arc2.example.org');
    expect(audience('arc3.example.org:8443')).to.equal('https://arc3.example.org:8443');
    expect(audience('own.example.org')).to.equal('own');
    expect(readToken(token('own.example.org'), 'x').scopes).to.deep.equal(['compute.read']);
    expect(audience('other.example.org:9619')).to.equal('other.example.org:9619');
    expect(issuer.looks).to.equal(1);
  });

  it('D5: gets one for each computing element of the queues, for which its own list counts first', async () => {
    const ce_targets = [
      { endpoint: 'arc.example.org:2811', ce_flavour: 'arc-ce' },
      { endpoint: 'ce.example.org', ce_flavour: 'htcondor-ce' },
      { endpoint: 'https://plain.example.org:443/arex' },
    ];
    const target_list = [{ endpoint: ce, audience: 'own' }];
    expect(await renewed(manager({ ce_targets, target_list }))).to.have.length(3);
    const audience = (endpoint: string) => readToken(token(endpoint), endpoint).audience[0];
    expect(audience('arc.example.org:443')).to.equal('https://arc.example.org');
    expect(audience(ce)).to.equal('own');
    expect(audience('https://plain.example.org:443/arex')).to.equal('https://plain.example.org:443/arex');
    await renewed(manager({ ce_targets, target_type: 'common', target_list: ['https://se.example.org'] }));
    expect(readdirSync(out)).to.have.length(4);
  });

  it('D5: says that no queue names a computing element', async () => {
    const [state] = await inspected(manager({ target_list: [] }));
    expect(state).to.deep.include({ kind: 'broken', name: out });
    expect((await renewed(manager({ target_list: [] })))[0]).to.match(
      /^credential-targets-missing: no queue names a computing element: list them in ceList/,
    );
  });

  it('gets one for the PanDA server, and for anybody by name', async () => {
    const pandaURLSSL = 'https://pandaserver.cern.ch:25443/server/panda';
    await renewed(manager({ target_type: 'panda', pandaURLSSL, target_list: [] }));
    const found = readToken(readFileSync(join(out, 'panda_token'), 'utf8'), 'x');
    expect(found.audience).to.deep.equal(['https://pandaserver.cern.ch']);
    expect(issuer.requests[0]).to.not.have.property('scope');
    await renewed(manager({ target_type: 'common', target_list: ['https://se.example.org'] }));
    expect(token('https://se.example.org')).to.not.equal('');
  });

  it('takes its options from a file, as Harvester does', async () => {
    writeFileSync(join(configDir, 'setup.json'), JSON.stringify(options()));
    const own = makeManager(IamTokenCredManager, { inFile: 'setup.json' }, { configDir });
    expect(await renewed(own)).to.deep.equal(['renewed']);
  });

  it('gets a token anew when it is an hour old, or at half its life', async () => {
    const clock = new ManualClock(Date.now());
    const own = manager({}, clock);
    await renewed(own);
    await clock.advance(0.9 * hour);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    expect(issuer.looks).to.equal(1);
    await clock.advance(0.2 * hour);
    expect(await renewed(own)).to.deep.equal(['renewed']);
    issuer.claims = () => ({
      exp: Math.floor(clock.now() / 1000) + 1200,
      nbf: Math.floor(clock.now() / 1000),
    });
    expect(await renewed(own, true)).to.deep.equal(['renewed']);
    await clock.advance(590_000);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    await clock.advance(20_000);
    expect(await renewed(own)).to.deep.equal(['renewed']);
  });

  it('hole 7: gets a token anew that queues may not use, whatever times it says', async () => {
    const clock = new ManualClock(Date.now());
    // Without it any renewal fails.
    rmSync(join(configDir, 'client.json'));
    const [own, name] = [manager({}, clock), join(out, md5(ce))];
    await fc.assert(
      fc.asyncProperty(anyTimes(Math.floor(clock.now() / 1000)), async (times) => {
        writeFileSync(name, makeJwt({ sub: 'pilot', ...times }), { mode: 0o600 });
        const [state] = await inspected(own);
        const isBad = state && judgeOne({ name, manager: 'M', state }, 0, clock.now()) !== undefined;
        if (isBad) expect((await renewed(own))[0]).to.match(/^credential-missing/);
      }),
      { numRuns: 300 },
    );
  });

  for (const [what, iat] of [
    ['far ahead', () => 9_999_999_999],
    ['in ms', () => Date.now()],
  ] as const)
    it(`hole 7: takes a good token that says it was made ${what}, and gets it anew at its age`, async () => {
      const clock = new ManualClock(Date.now());
      const own = manager({}, clock);
      issuer.claims = () => ({ nbf: undefined, iat: iat() });
      expect(await renewed(own)).to.deep.equal(['renewed']);
      const [state] = await inspected(own);
      expect(state && judgeOne({ name: '', manager: 'M', state }, hour, clock.now())).to.equal(undefined);
      await clock.advance(0.9 * hour);
      expect(await renewed(own)).to.deep.equal(['unchanged']);
      await clock.advance(0.2 * hour);
      expect(await renewed(own)).to.deep.equal(['renewed']);
    });

  for (const [what, claims] of [
    ['has no beginning but 0', () => ({ nbf: 0, iat: undefined })],
    ['had most of its life before', (now: number) => ({ nbf: now - 64_800, iat: now - 64_800 })],
  ] as const)
    it(`asks for no token at each look that ${what}`, async () => {
      const clock = new ManualClock(Date.now());
      const own = manager({}, clock);
      issuer.claims = () => claims(Math.floor(clock.now() / 1000));
      expect(await renewed(own)).to.deep.equal(['renewed']);
      for (let look = 0; look < 200; look++) {
        await clock.advance(2000);
        expect(await renewed(own)).to.deep.equal(['unchanged']);
      }
      expect(issuer.requests).to.have.length(1);
      await clock.advance(hour);
      expect(await renewed(own)).to.deep.equal(['renewed']);
      await clock.advance(2000);
      writeFileSync(join(out, md5(ce)), 'broken', { mode: 0o600 });
      expect(await renewed(own)).to.deep.equal(['renewed']);
    });

  it('hole 3: has a token that an earlier daemon got shown by no server that repeats it', async () => {
    const seconds = Math.floor(Date.now() / 1000);
    const found = makeJwt({ sub: 'pilot', iat: seconds, nbf: seconds, exp: seconds + 86_400 });
    writeFileSync(join(out, md5(ce)), found, { mode: 0o600 });
    expect(await renewed(manager())).to.deep.equal(['unchanged']);
    expect(fromOutside(`bad ${Buffer.from(found).toString('base64')}`)).to.equal('bad (hidden)');
  });

  it('shows its secret in a header where that is wanted, and asks an endpoint that is named', async () => {
    const own = manager({ client_auth: 'basic', token_endpoint: `${issuer.url}/token` });
    expect(await renewed(own)).to.deep.equal(['renewed']);
    expect(issuer.requests[0]).to.not.have.property('client_secret');
    expect(issuer.headers[0]).to.match(/^Basic /);
    expect(issuer.looks).to.equal(0);
  });

  it('reads a rotated secret of the client at once', async () => {
    const own = manager();
    const before = await own.fingerprint?.(new AbortController().signal);
    writeClient({ issuer: issuer.url, client_id: 'harvester', client_secret: 'rotated' });
    expect(await own.fingerprint?.(new AbortController().signal)).to.not.equal(before);
    await renewed(own);
    expect(issuer.requests[0]).to.include({ client_secret: 'rotated' });
  });

  it('warns of a client’s file that others can read', async () => {
    await renewed(manager());
    chmodSync(join(configDir, 'client.json'), 0o644);
    expect(await warnings(manager())).to.deep.equal(['credential-exposed']);
  });

  describe('keeps the last good token and says why when', () => {
    let good: string;

    beforeEach(async () => {
      await renewed(manager());
      good = token(ce);
    });

    afterEach(() => {
      expect(token(ce) === good, 'it stays').to.be.true;
      expect(readdirSync(out)).to.deep.equal([md5(ce)]);
    });

    async function failing(more: object = {}): Promise<string> {
      const said = (await renewed(manager(more), true))[0] ?? '';
      expect(said).to.not.contain(clientSecret);
      return said;
    }

    it('the issuer refuses, without showing the secret that it repeats', async () => {
      const error_description = `unknown client with secret ${clientSecret}`;
      issuer.answer = () => ({ statusCode: 401, body: { error: 'invalid_client', error_description } });
      expect(await failing()).to.equal(
        `credential-issuer: token issuer ${issuer.url} refused (HTTP 401): invalid_client, unknown client with secret (hidden)`,
      );
    });

    it('hole 3: the issuer refuses a header, and repeats what was in it', async () => {
      const own = 'Zq7-_cl.i-e_nt~Se-cr_et.91';
      const written = own.replaceAll(
        /[-_.~]/g,
        (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
      );
      writeClient({ issuer: issuer.url, client_id: 'harvester', client_secret: own });
      const error_description = `unknown client harvester:${written}`;
      issuer.answer = () => ({ statusCode: 401, body: { error: 'invalid_client', error_description } });
      expect(await failing({ client_auth: 'basic', token_endpoint: `${issuer.url}/token` })).to.match(
        /unknown client harvester:\(hidden\)$/,
      );
    });

    it('the issuer is down, unknown, not trusted or silent', async () => {
      const client = (url: string) => {
        writeClient({ issuer: url, client_id: 'harvester', client_secret: clientSecret });
      };
      client(`https://localhost:${await freePort()}`);
      expect(await failing()).to.match(/^credential-issuer: .* cannot be reached: .*ECONNREFUSED/);
      client('https://no-such-issuer.invalid');
      expect(await failing()).to.match(/cannot be reached: .*(ENOTFOUND|EAI_AGAIN)/);
      client(issuer.url);
      expect(await failing({ ca_file: undefined }))
        .to.match(/cannot be reached: .*certificate.*: ca_file names the file of its authority/)
        .and.to.not.include('Node.js');
      const silent = createServer(() => undefined);
      await new Promise<void>((listening) => {
        silent.listen(0, 'localhost', listening);
      });
      const address = silent.address();
      client(`https://localhost:${typeof address === 'object' ? String(address?.port) : ''}`);
      expect(await failing({ timeLimit: 0.2 })).to.match(/^credential-issuer: .*did not answer in time$/);
      silent.close();
    });

    it('the issuer is something else', async () => {
      issuer.answer = () => ({ statusCode: 500, body: { oops: clientSecret } });
      expect(await failing()).to.match(/^credential-issuer: .*\(HTTP 500\)/);
      issuer.answer = () => ({ statusCode: 200, body: { access_token: 5 } });
      expect(await failing()).to.match(/^credential-issuer: /);
      writeClient({ issuer: `${issuer.url}/nowhere`, client_id: 'a', client_secret: clientSecret });
      expect(await failing()).to.match(/^credential-issuer: .*\(HTTP 404\)/);
    });

    it('the token is none, ends too soon, is for somebody else or lacks scopes', async () => {
      issuer.answer = () => ({ statusCode: 200, body: { access_token: 'opaque', token_type: 'Bearer' } });
      expect(await failing()).to.equal(
        `credential-issuer: token issuer ${issuer.url} failed: its token is no JWT (three parts of base64url with dots between them)`,
      );
      issuer.answer = undefined;
      issuer.claims = () => ({ exp: Math.floor(Date.now() / 1000) + 200 });
      expect(await failing()).to.match(/^credential-unfit: .*it must last 300 s at least$/);
      issuer.claims = () => ({ exp: undefined });
      expect(await failing()).to.match(/^credential-unfit: .*says no end$/);
      const ahead = Math.floor(Date.now() / 1000) + 86_400;
      issuer.claims = () => ({ nbf: ahead, exp: ahead + 3600 });
      expect(await failing()).to.match(/^credential-unfit: .*is not valid before 2[^:]*:[^:]*:[^:]*Z$/);
      issuer.claims = () => ({ aud: 'somebody' });
      expect(await failing()).to.match(/is for somebody, and not for ce.example.org:9619$/);
      issuer.claims = () => ({ scope: 'compute.read compute.create' });
      expect(await failing()).to.match(/lacks the scopes compute.modify compute.cancel$/);
    });

    it('the client’s file is missing or wrong, without showing it', async () => {
      const path = join(configDir, 'client.json');
      writeClient(`{ "client_secret": "${clientSecret}" `);
      expect(await failing()).to.match(/^credential-wrong: .*client.json is no JSON/);
      writeClient({ issuer: issuer.url, client_secret: clientSecret });
      expect(await failing()).to.equal(`credential-wrong: ${path} lacks client_id`);
      writeClient({
        issuer: 'http://plain.example.org',
        client_id: clientSecret,
        client_secret: clientSecret,
      });
      expect(await failing()).to.contain('issuer must be an https:// URL');
      rmSync(path);
      expect(await failing()).to.equal(`credential-missing: ${path} does not exist`);
    });
  });

  it('takes no name and no word of CRIC for a token, and hides it nowhere', async () => {
    const refused = async (access_token: string) => {
      issuer.answer = () => ({ statusCode: 200, body: { access_token, token_type: 'Bearer' } });
      expect((await renewed(manager()))[0]).to.match(/^credential-issuer: .* failed: its token is no JWT/);
    };
    for (const word of ordinaryWords) {
      await refused(word);
      expect(holdsOwn(word), word).to.equal(false);
    }
    // A piece of a secret is hidden, too.
    const [longest = ''] = ordinaryWords.toSorted((one, other) => other.length - one.length);
    await refused(`${longest}.e30.`);
    expect(holdsOwn(longest)).to.equal(false);
    expect(readdirSync(out)).to.deep.equal([]);
  });

  it('gets the other tokens when one is refused', async () => {
    issuer.answer = ({ audience }) =>
      audience === 'bad:1'
        ? { statusCode: 400, body: { error: 'invalid_target' } }
        : (undefined as unknown as { statusCode: number; body: Record<string, unknown> });
    const outcomes = await renewing(manager({ target_list: ['bad:1', ce] }));
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(['failed', 'renewed']);
  });

  it('says which file is missing, and which directory', async () => {
    expect((await renewed(manager({ target_list_file: 'nothing' })))[0]).to.match(
      /^credential-missing: target_list_file .*nothing does not exist$/,
    );
    expect((await inspected(manager({ target_list_file: 'nothing' })))[0]).to.have.property('kind', 'broken');
    expect((await renewed(manager({ out_dir: 'no/where' })))[0]).to.match(
      /^credential-unwritable: .*where is no directory: make one/,
    );
  });

  it('takes a token for anybody', async () => {
    issuer.claims = () => ({ aud: 'https://wlcg.cern.ch/jwt/v1/any' });
    expect(await renewed(manager())).to.deep.equal(['renewed']);
    writeFileSync(join(out, md5(ce)), makeJwt({ sub: 'old', exp: 5, iat: 1 }));
    expect(await renewed(manager())).to.deep.equal(['renewed']);
  });

  it('finds mistakes in its options', async () => {
    const file = join(configDir, 'setup.json');
    const from = (more: object) => mistakes(IamTokenCredManager, options(more));
    expect(await from({})).to.deep.equal([]);
    expect((await from({ target_type: 'site' }))[0]).to.contain('it must be one of');
    expect((await from({ target_type: 'common', target_list: [] }))[0]).to.contain('there is no target');
    expect(await from({ target_list: [] })).to.deep.equal([]);
    const twice = (audience: string) =>
      from({
        target_list: [
          { endpoint: 'a', audience: 'x' },
          { endpoint: 'a', audience },
        ],
      });
    expect(await twice('x')).to.deep.equal([]);
    expect((await twice('y'))[0]).to.match(
      /^\/target_list\/1: this endpoint stands there with another audience/,
    );
    expect((await from({ target_type: 'panda' }))[0]).to.contain('pandaURLSSL is missing');
    expect(await from({ token_endpoint: 'http://x' })).to.have.length(1);
    expect(await from({ panda_token_filename: '../x' })).to.have.length(1);
    expect(await from({ refresh_part: 2 })).to.have.length(1);
    expect(await mistakes(IamTokenCredManager, {})).to.have.length(3);
    expect((await mistakes(IamTokenCredManager, { inFile: '/none/x' }))[0]).to.contain(
      'inFile /none/x: cannot read',
    );
    writeFileSync(file, '{');
    expect((await mistakes(IamTokenCredManager, { inFile: file }))[0]).to.contain('it is no JSON');
    writeFileSync(file, '{ "target_type": "ce", "out_dir": "/x", "target_list": ["a"] }');
    expect((await mistakes(IamTokenCredManager, { inFile: file }))[0]).to.contain(
      '"client_cred_file" is missing',
    );
    const error = await rejection(inspected(makeManager(IamTokenCredManager, { inFile: '/none/x' })));
    expect((error as Error).message).to.contain('cannot read the file');
  });
});

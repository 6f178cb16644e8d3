import { mkdirSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { judgeOne } from '../../../src/agents/credentials/credential-board.ts';
import type { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import { K8sSecretManager } from '../../../src/plugins/credentials/k8s-secret/manager.ts';
import { TokenKeyCredManager } from '../../../src/plugins/credentials/token-key/index.ts';
import type { PandaServer } from '../../../src/plugins/contracts/panda-server.ts';
import { fromOutside, holdsOwn } from '../../../src/util/own-secrets.ts';
import { runHere } from '../../support/command-line.ts';
import {
  facts,
  inspected,
  makeManager,
  mistakes,
  renewed,
  renewing,
  warnings,
} from '../../support/credential-manager.ts';
import { type Authority, issue, makeAuthority, makeJwt, ordinaryWords } from '../../support/credentials.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import {
  cut,
  json,
  type Respond,
  type ScriptedServer,
  startScriptedServer,
} from '../../support/scripted-server.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const minute = 60_000;
const harvesters = {
  module: 'pandaharvester.harvestercredmanager.token_key_cred_manager',
  name: 'TokenKeyCredManager',
};
const [first, second] = ['3f0c2a44-9d39-4f8e-b7c4-62ad4b7f7d1e', '77e1b6b0-40f6-4a52-9a57-1f2ce9a80b35'];
const answering = (tokenKey: unknown): Respond =>
  json(200, { success: true, message: '', data: { tokenKey } });
const refusing = (message: string): Respond => json(200, { success: false, message, data: null });

describe('TokenKeyCredManager', () => {
  let ca: Authority;
  let server: ScriptedServer;
  let configDir: string;
  let path: string;

  before(async () => {
    ca = makeAuthority();
    const extensions = ['subjectAltName=IP:127.0.0.1'];
    const { certificate, key } = issue(ca.directory, ca, { name: '/DC=org/DC=test/CN=panda', extensions });
    server = await startScriptedServer({ cert: readFileSync(certificate), key: readFileSync(key) });
  });
  after(() => server.stop());

  beforeEach(() => {
    configDir = temporaryDirectory();
    path = join(configDir, 'key');
    server.requests.length = 0;
    server.always(answering(first));
  });

  const options = (more: object = {}) => ({ client_name: 'atlas.pilot', token_key_file: 'key', ...more });
  const pandaServer = (): PandaServer => ({
    url: `${server.url}/api/v1`,
    login: { kind: 'oidc', token: { text: makeJwt({ sub: 'robot' }) }, origin: 'atlas.production' },
    caFile: ca.certificate,
    timeout: 1000,
  });
  const manager = (more: object = {}, clock = new ManualClock()) =>
    makeManager(TokenKeyCredManager, options(more), { configDir, clock, pandaServer });
  /** A key in the file, of this age by the clock. */
  const keep = (key: string, age: number, clock: ManualClock) => {
    writeFileSync(path, key, { mode: 0o600 });
    const at = (clock.now() - age) / 1000;
    utimesSync(path, at, at);
  };
  const kept = () => readFileSync(path, 'utf8');

  it('asks the PanDA server for the key of its client, and keeps it as a secret file', async () => {
    expect(await renewing(manager())).to.deep.equal([{ kind: 'renewed', name: path }]);
    expect(server.requests.map(({ method, url }) => `${method} ${url}`)).to.deep.equal([
      'GET /api/v1/creds/get_token_key?client_name=atlas.pilot',
    ]);
    expect(server.requests[0]?.headers).to.include({ origin: 'atlas.production' });
    expect(kept()).to.equal(first);
    expect(statSync(path).mode & 0o777).to.equal(0o600);
    expect(readdirSync(configDir)).to.deep.equal(['key']);
    expect(fromOutside(`the server said ${first} again`)).not.to.contain(first.slice(0, 16));
  });

  it('hole 7: gets one anew whose file is of the future', async () => {
    const clock = new ManualClock();
    keep(first, -600 * minute, clock);
    expect(await renewed(manager({}, clock))).to.deep.equal(['renewed']);
  });

  it('gets the next one once the file is refresh_interval old, and at once where it is forced', async () => {
    const clock = new ManualClock();
    const own = manager({ refresh_interval: 90 }, clock);
    keep(first, 89 * minute, clock);
    server.always(answering(second));
    const fingerprint = await own.fingerprint?.(new AbortController().signal);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    expect(server.requests).to.have.length(0);
    await clock.advance(minute);
    expect(await own.fingerprint?.(new AbortController().signal)).not.to.equal(fingerprint);
    expect(await renewed(own)).to.deep.equal(['renewed']);
    expect(kept()).to.equal(second);
    keep(second, 0, clock);
    expect(await renewed(own)).to.deep.equal(['unchanged']);
    expect(await renewed(own, true)).to.deep.equal(['renewed']);
    expect(server.requests).to.have.length(2);
  });

  it('has 60 minutes by default, as in Harvester', async () => {
    const clock = new ManualClock();
    keep(second, 60 * minute - 1, clock);
    expect(await renewed(manager({}, clock))).to.deep.equal(['unchanged']);
    keep(second, 60 * minute, clock);
    expect(await renewed(manager({}, clock))).to.deep.equal(['renewed']);
  });

  it('replaces a file at any age that holds no key', async () => {
    for (const content of ['', 'two words', `${first}\n${second}`, 'x'.repeat(1025)]) {
      keep(content, 0, new ManualClock());
      const [state] = await inspected(manager());
      expect(state).to.deep.nested.include({ kind: 'broken', 'error.code': 'credential-wrong' });
      expect(JSON.stringify(state)).not.to.contain(first.slice(0, 8));
      expect(await renewed(manager())).to.deep.equal(['renewed']);
      expect(kept()).to.equal(first);
    }
  });

  describe('keeps the last key, and names what is wrong, where the server', () => {
    const long = `${second}${'x'.repeat(1000)}`;
    const half: Respond = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`{"success": true, "message": "", "data": {"tokenKey": "${second}`);
    };
    for (const [what, respond, said] of [
      ['answers a number', answering(7), /^panda-token-key: .* the tokenKey .* is no text$/],
      ['answers null', answering(null), /^panda-token-key: .* is no text$/],
      ['answers an empty text', answering(''), /^panda-token-key: .* is empty$/],
      ['answers a long text', answering(long), /^panda-token-key: .* is no UUID \(1036 characters\)$/],
      ['answers two lines', answering(`${second}\nx`), /^panda-token-key: .* is no UUID \(38 characters\)$/],
      ['answers a line with its end', answering(`${second}\n`), /^panda-token-key: .* is no UUID/],
      ['answers blanks', answering(`${second} x`), /^panda-token-key: .* is no UUID/],
      ['answers no key at all', json(200, { success: true, data: {} }), /^panda-no-api: .*tokenKey/],
      ['answers half', half, /^panda-no-answer: .* half an answer: \(hidden\)$/],
      [
        'does not allow it to this user',
        refusing("Denied since 'Some User' not authorized with 't' in ATLAS_PANDAMETA.USERS.GRIDPREF"),
        /^panda-token-key: no key for the client atlas.pilot: Denied since/,
      ],
      [
        'has no key of the client',
        refusing("Token key is missing for 'atlas.pilot'"),
        /^panda-token-key: .*: Token key is missing for 'atlas.pilot'$/,
      ],
      ['fails inside', json(500, {}), /^panda-server-error: /],
      ['answers the key alone', json(200, second), /^panda-no-api: .* no answer of the API: \(hidden\)$/],
      [
        'fails with the key',
        json(500, `KeyError: ('tokenKey', '${second}')`),
        /^panda-server-error: .* HTTP 500: \(hidden\)$/,
      ],
      ['answers another key', json(200, { key: second }), /^panda-no-answer: .* half an answer: \(hidden\)$/],
      [
        'answers too many values',
        json(200, [second, ...Array.from({ length: 200 }, () => 1)]),
        /^panda-no-answer: .* with more than 100 values: \(hidden\)$/,
      ],
      [
        'refuses with the key',
        refusing(`cannot give ${second} to 'atlas.pilot'`),
        /^panda-refused: .*: cannot give \(hidden\) to 'atlas.pilot'$/,
      ],
      ['hangs up', cut, /^panda-no-answer: /],
    ] as const)
      it(what, async () => {
        const clock = new ManualClock();
        const age = 61 * minute;
        keep(first, age, clock);
        server.always(respond);
        const [outcome = ''] = await renewed(manager({}, clock));
        expect(outcome).to.match(said);
        expect(outcome).not.to.contain(second.slice(0, 8));
        expect(kept()).to.equal(first);
        expect(readdirSync(configDir)).to.deep.equal(['key']);
      });
  });

  it('takes no name and no word of CRIC for a key, and hides it nowhere', async () => {
    for (const word of ordinaryWords) {
      server.always(answering(word));
      expect((await renewed(manager(), true))[0]).to.match(
        /^panda-token-key: no key for the client atlas.pilot: the tokenKey that the server answers is no UUID/,
      );
      keep(word, 0, new ManualClock());
      await inspected(manager());
      expect(holdsOwn(word), word).to.equal(false);
    }
  });

  it('keeps a key in force while the server is away, says how old it is, and stops no queue', async () => {
    const clock = new ManualClock();
    const own = makeManager(TokenKeyCredManager, options(), {
      configDir,
      clock,
      pandaServer: () => ({ ...pandaServer(), url: 'https://127.0.0.1:1/api/v1' }),
    });
    keep(first, 30 * minute, clock);
    expect(await warnings(own)).to.deep.equal([]);
    await clock.advance(600 * minute);
    const [failure = ''] = await renewed(own);
    expect(failure).to.match(/^panda-unreachable: no key for the client atlas.pilot: https:/);
    const [state] = await inspected(own);
    if (state?.kind !== 'there') throw new Error(JSON.stringify(state));
    expect(state.warnings).to.deep.equal([
      {
        code: 'credential-old',
        message: `${path} is of 2025-12-31T23:30:00.000Z, older than refresh_interval (60 minutes)`,
      },
    ]);
    const trouble = { code: 'panda-unreachable', message: failure } as const;
    expect(judgeOne({ name: path, manager: 'm', state, trouble }, 3_600_000, clock.now())).to.equal(
      undefined,
    );
    expect(await facts(own)).to.include({ name: path, kind: 'token-key', subject: 'atlas.pilot' });
    expect(await facts(own)).not.to.have.property('expiresAt');
    expect(kept()).to.equal(first);
  });

  it('warns of a key that others can read, and hides a key that it only found', async () => {
    const key = 'd0b1f8c2-5a3e-4c1d-8f6b-93a7e2c4d581';
    writeFileSync(path, `${key}\n`, { mode: 0o644 });
    const clock = new ManualClock(Date.now());
    expect(await warnings(manager({}, clock))).to.deep.equal(['credential-exposed']);
    expect(JSON.stringify(await inspected(manager({}, clock)))).not.to.contain(key.slice(0, 8));
    expect(fromOutside(`x ${key} y`)).not.to.contain(key.slice(0, 16));
  });

  it('names wrong options', async () => {
    mkdirSync(path);
    const found = async (more: object) =>
      (await mistakes(TokenKeyCredManager, options(more), { configDir }))[0];
    expect(await found({ token_key_file: 'other' })).to.equal(undefined);
    expect(await found({ client_name: '' })).to.match(/^\/client_name: client_name is ""/);
    expect(await found({ client_name: undefined })).to.match(/client_name/);
    expect(await found({ client_name: 'a\n' })).to.match(/^\/client_name: /);
    expect(await found({ token_key_file: '' })).to.match(/^\/token_key_file: /);
    expect(await found({ token_key_file: undefined })).to.match(/token_key_file/);
    for (const refresh_interval of [0, -1, '60', 1e9])
      expect(await found({ token_key_file: 'other', refresh_interval })).to.match(
        /^\/refresh_interval: refresh_interval is /,
      );
    expect(await found({})).to.equal(
      `/token_key_file: token_key_file ${path}: this is a directory; name a file in it`,
    );
    const missing = join(configDir, 'missing');
    expect(await found({ token_key_file: 'missing/key' })).to.equal(
      `/token_key_file: token_key_file ${missing}/key: ${missing} is no directory: make one that the user of the daemon can write to`,
    );
  });

  it('keeps a key that K8sSecretCredManager ships to pilots', async () => {
    await renewed(manager());
    const sent: Record<string, string> = {};
    const client = {
      get: async () => ({ data: { ...sent } }),
      patch: async (_: string, { data }: { readonly data: Readonly<Record<string, string>> }) => {
        Object.assign(sent, data);
      },
    } as unknown as KubernetesClient;
    const secret = new K8sSecretManager({
      cluster: 'c',
      client,
      namespaces: ['n'],
      secret: 's',
      files: [path],
      fieldManager: 't',
      minLifetime: 3_600_000,
      clock: new ManualClock(),
    });
    expect(await renewed(secret)).to.deep.equal(['renewed']);
    expect(sent).to.deep.equal({ key: Buffer.from(first).toString('base64') });
    expect(await facts(secret)).to.include({ name: 'c/n/s/key', kind: 'token-key' });
    expect(await warnings(secret)).to.deep.equal([]);
  });

  describe("by Harvester's names in panda_harvester.cfg", () => {
    let settings: string;

    beforeEach(() => {
      settings = join(configDir, 'panda_harvester.cfg');
      writeFileSync(join(configDir, 'panda_token'), makeJwt({ sub: 'robot' }), { mode: 0o600 });
    });

    function write(pandacon: readonly string[], queues: object = {}, more: object = {}): void {
      writeFileSync(join(configDir, 'panda_queueconfig.json'), JSON.stringify(queues));
      const configs = { production: options(more) };
      writeFileSync(
        settings,
        [
          ...['[master]', 'harvester_id = H', 'stateDir = state'],
          ...['[qconf]', 'configFile = panda_queueconfig.json', '[pandacon]', 'timeout = 180', ...pandacon],
          ...['[credmanager]', 'moduleName =', 'className =', 'pluginConfigs =', '  ['],
          ...JSON.stringify({ ...harvesters, configs }, undefined, 4)
            .split('\n')
            .map((line) => `    ${line}`),
          '  ]',
        ].join('\n'),
      );
    }
    const login = () => [
      ...[`server_api_url_ssl = ${server.url}/api/v1`, `ca_cert = ${ca.certificate}`, 'auth_type = oidc'],
      ...['auth_token = file:panda_token', 'auth_origin = atlas.production'],
    ];
    const run = (...args: string[]) => runHere('--config', settings, ...args);

    it('writes the file, and check-config has nothing against it', async () => {
      write(login());
      const checked = await run('check-config');
      expect(checked.stdout).to.contain(
        `a start would write the file ${path} (TokenKeyCredManager of the settings)`,
      );
      expect(checked.stdout).not.to.match(
        /error:|credmanager-not-applied|TokenKeyCredManager(?! of the settings)/,
      );
      const { status, stdout } = await run('credentials', 'renew', 'TokenKeyCredManager');
      expect(stdout).to.equal(`${path}: renewed\n`);
      expect(status).to.equal(0);
      expect(kept()).to.equal(first);
      const shown = await run('credentials');
      expect(shown.stdout).to.match(/good .*atlas\.pilot .*TokenKeyCredManager/);
      expect(shown.stdout).not.to.contain(first);
    });

    it('keeps the key itself, also where a queue names its file: no watcher stands beside it', async () => {
      const local = (name: string) => ({ name, module: 'thresher/local' });
      const sections = {
        submitter: local('LocalSubmitter'),
        monitor: local('LocalMonitor'),
        sweeper: local('LocalSweeper'),
      };
      const queue = { ...sections, maxWorkers: 1, mapType: 'NoJob', demand: 'fill' };
      write(login(), {
        A: { ...queue, credentials: [path], credmanagers: [{ ...harvesters, ...options() }] },
      });
      expect((await run('check-config')).stdout).to.match(/^A +ready/m);
      await run('credentials', 'renew', path);
      const views = JSON.parse((await run('credentials', '--output', 'json')).stdout) as object[];
      expect(views).to.have.length(1);
      expect(views[0]).to.include({ name: path, manager: 'TokenKeyCredManager', state: 'good' });
    });

    for (const [what, pandacon, said] of [
      [
        'no server with a login',
        [],
        /cfg:\d+.*pluginConfigs\/0\/configs\/production: error: TokenKeyCredManager asks the PanDA server, and the settings name none with a login: in pandacon set server_api_url_ssl, and cert_file and key_file, or auth_type: oidc with auth_token and auth_origin \[panda-server-off\]/,
      ],
      [
        'half a login',
        ['auth_type = oidc', 'auth_token = file:panda_token'],
        /TokenKeyCredManager asks the PanDA server, and the link to the PanDA server is off: see the problem of pandacon \[panda-server-off\]/,
      ],
    ] as const)
      it(`is a mistake at the manager where the settings have ${what}`, async () => {
        write(pandacon);
        const { status, stdout } = await run('check-config');
        expect(status).to.equal(1);
        expect(stdout).to.match(said);
        expect(stdout).not.to.contain('a start would write');
      });
  });
});

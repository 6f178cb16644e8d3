import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readPandaServer } from '../../../src/config/settings/panda-login-files.ts';
import { readSettings } from '../../../src/config/settings/settings.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const template = join(import.meta.dirname, '../../fixtures/harvester/panda_harvester.cfg');
const machine = { env: { TOKEN: '/run/token' }, hostname: 'h', home: '/none' };

let directory: string;

async function serverOf(name: string, text: string) {
  const file = join(directory, name);
  writeFileSync(file, text);
  const result = readSettings(file, undefined, machine);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const found = await readPandaServer(result.settings, files);
  return {
    ...found,
    problems: found.problems.map(({ file: at, line, pointer, severity, code, message }) => [
      `${at.replace(`${directory}/`, '')}:${line} ${pointer}`,
      `${severity} ${code}`,
      message.replaceAll(`${directory}/`, ''),
    ]),
  };
}

const master = { harvester_id: 'CERN_1' };
const yaml = (pandacon: object) => serverOf('thresher.yaml', JSON.stringify({ master, pandacon }));
const cfg = (lines: readonly string[]) =>
  serverOf(
    'panda_harvester.cfg',
    ['[pandacon]', ...lines, '', '[master]', 'harvester_id = CERN_1', ''].join('\n'),
  );

const certificate = '-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n';
const key = '-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n';
const contents = { proxy: certificate + key, certificate, key, ca: certificate, token: 'ey.x.y\n' };

const link = {
  pollInterval: 5,
  commandsAtOnce: 20,
  reportBatch: 100,
  repeatInterval: 1800,
  dialogsAtOnce: 50,
  dialogLevel: 'WARNING',
  activateWorkerFactor: 1,
  noPilotsWhenNoActiveJobs: false,
};
const url = 'https://panda.example.org:25443/api/v1';
const usual = { url, timeout: 180_000, link };

describe('the PanDA server of the settings', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
    for (const [name, text] of Object.entries(contents)) writeFileSync(join(directory, name), text);
    writeFileSync(join(directory, 'garbage'), 'text\n');
  });

  for (const [what, pandacon, expected] of [
    [
      'a proxy alone',
      { server_api_url_ssl: url, cert_file: 'proxy' },
      () => ({ login: { kind: 'x509', certFile: at('proxy'), keyFile: at('proxy') } }),
    ],
    [
      'a certificate and its key, with authorities and a time-out',
      { server_api_url_ssl: `${url}/`, cert_file: 'proxy', key_file: 'key', ca_cert: 'ca', timeout: 20 },
      () => ({
        login: { kind: 'x509', certFile: at('proxy'), keyFile: at('key') },
        caFile: at('ca'),
        timeout: 20_000,
      }),
    ],
    [
      'the file of a token',
      { server_api_url_ssl: url, auth_type: 'oidc', auth_token: 'file:token', auth_origin: 'vo.production' },
      () => ({ login: { kind: 'oidc', token: { file: at('token') }, origin: 'vo.production' } }),
    ],
    [
      'a token itself',
      { server_api_url_ssl: url, auth_type: 'oidc', auth_token: 'ey.x.y', auth_origin: 'vo.production' },
      () => ({ login: { kind: 'oidc', token: { text: 'ey.x.y' }, origin: 'vo.production' } }),
    ],
    [
      'the address of the old interface, of which the host counts',
      { pandaURLSSL: 'https://panda.example.org:25443/server/panda', cert_file: 'proxy' },
      () => ({ login: { kind: 'x509', certFile: at('proxy'), keyFile: at('proxy') } }),
    ],
  ] as const) {
    it(`takes ${what}`, async () => {
      const { server, problems } = await yaml(pandacon);
      expect(problems).to.deep.equal([]);
      expect(server).to.deep.equal({ ...usual, ...expected() });
    });
  }

  it("takes Harvester's own template, with a certificate in it, and says nothing of the link", async () => {
    mkdirSync(join(directory, 'etc'));
    copyFileSync(template, join(directory, 'panda_harvester.cfg'));
    const text = readFileSync(template, 'utf8')
      .replace('harvester_id = FIXME', 'harvester_id = CERN_1')
      .replace('FIXME_1', 'CERN')
      .replace('FIXME_2', 'BNL')
      .replace('cert_file = FIXME', 'cert_file = proxy')
      .replace('key_file = FIXME', 'key_file = proxy')
      .replace('/etc/pki/tls/certs/CERN-bundle.pem', 'ca');
    const { server, problems } = await serverOf('panda_harvester.cfg', text);
    expect(problems).to.deep.equal([]);
    expect(server).to.deep.equal({
      ...usual,
      url: 'https://pandaserver.cern.ch:25443/api/v1',
      login: { kind: 'x509', certFile: at('proxy'), keyFile: at('proxy') },
      caFile: at('ca'),
    });
  });

  it('says that messages of the level INFO are not sent', async () => {
    const text = `[pandacon]\nserver_api_url_ssl = ${url}\ncert_file = proxy\n[propagator]\nminMessageLevel = INFO\n`;
    const { server, problems } = await serverOf('panda_harvester.cfg', text);
    expect(server?.link?.dialogLevel).to.equal('INFO');
    expect(problems.filter(([at]) => at?.includes('propagator'))).to.deep.equal([
      [
        'panda_harvester.cfg:5 /propagator/minMessageLevel',
        'notice unread-setting',
        'minMessageLevel: INFO counts as WARNING; thresher sends the PanDA server no lower messages',
      ],
    ]);
  });

  it("works as Harvester's other sections say", async () => {
    const text = [
      ...[
        '[master]',
        'harvester_id = CERN_1',
        '[pandacon]',
        `server_api_url_ssl = ${url}`,
        'cert_file = proxy',
      ],
      ...['[commandmanager]', 'sleepTime = 2', 'commands_bulk_size = 7'],
      ...['[propagator]', 'nWorkersInBulk = 500', 'updateInterval = 600', 'maxDialogs = 0'],
      ...['minMessageLevel = ERROR', '[submitter]', 'activateWorkerFactor = 0.5'],
      ...['noPilotsWhenNoActiveJobs = True', ''],
    ];
    const { server } = await serverOf('panda_harvester.cfg', text.join('\n'));
    expect(server?.link).to.deep.equal({
      pollInterval: 2,
      commandsAtOnce: 7,
      reportBatch: 500,
      repeatInterval: 600,
      dialogsAtOnce: 0,
      dialogLevel: 'ERROR',
      activateWorkerFactor: 0.5,
      noPilotsWhenNoActiveJobs: true,
    });
  });

  it('is none, without a word, where an address stands for credential managers alone', async () => {
    const { server, problems } = await cfg(['pandaURLSSL = https://panda.example.org:25443/server/panda']);
    expect([server, problems]).to.deep.equal([undefined, []]);
  });

  const off = 'the link to the PanDA server is off: ';
  const here = `server_api_url_ssl = ${url}`;
  for (const [what, lines, key, said, message] of [
    [
      'a login without a server',
      ['cert_file = proxy'],
      '1 /pandacon/pandaURLSSL',
      'warning panda-server-off',
      `${off}pandacon has a login, but names no server in server_api_url_ssl; write https://HOST:PORT/api/v1`,
    ],
    [
      'an address without TLS',
      ['cert_file = proxy', 'server_api_url_ssl = http://h:25080/api/v1'],
      '3 /pandacon/server_api_url_ssl',
      'error wrong-type',
      `${off}server_api_url_ssl is "http://h:25080/api/v1", and the server takes a login by https alone; write https://HOST:PORT/api/v1`,
    ],
    [
      'a text that is no address',
      ['cert_file = proxy', 'pandaURLSSL = panda'],
      '3 /pandacon/pandaURLSSL',
      'error wrong-type',
      `${off}pandaURLSSL is "panda", which is no address; write https://HOST:PORT/api/v1`,
    ],
    [
      'a password in the address, without repeating it',
      ['cert_file = proxy', 'pandaURLSSL = https://me:secret@h/'],
      '3 /pandacon/pandaURLSSL',
      'error wrong-type',
      `${off}pandaURLSSL is an address, which has a user or parameters; write https://HOST:PORT/api/v1`,
    ],
    [
      'two servers',
      ['cert_file = proxy', 'server_api_url_ssl = https://a/api/v1 https://b/api/v1'],
      '3 /pandacon/server_api_url_ssl',
      'error wrong-type',
      `${off}server_api_url_ssl is "https://a/api/v1 https://b/api/v1", which has blanks: name one server; write https://HOST:PORT/api/v1`,
    ],
    [
      'another kind of login',
      [here, 'auth_type = kerberos'],
      '3 /pandacon/auth_type',
      'error wrong-type',
      `${off}auth_type is "kerberos"; write x509 or oidc`,
    ],
    [
      'a login without a certificate',
      [here, 'auth_type = x509'],
      '1 /pandacon/cert_file',
      'warning panda-server-off',
      `${off}with auth_type x509 it needs cert_file, the file of a certificate or proxy (PEM) with the production role`,
    ],
    [
      'the placeholder of the template',
      [here, 'cert_file = FIXME'],
      '3 /pandacon/cert_file',
      'warning template-placeholder',
      `${off}cert_file is "FIXME", a placeholder of Harvester's template; write the file of a certificate or proxy (PEM) with the production role`,
    ],
    [
      'a token without its origin',
      [here, 'auth_type = oidc', 'auth_token = file:token'],
      '1 /pandacon/auth_origin',
      'warning panda-server-off',
      `${off}with auth_type oidc it needs auth_origin, VO.production: the server takes the role from it`,
    ],
    [
      'an origin of two words',
      [here, 'auth_type = oidc', 'auth_token = file:token', 'auth_origin = vo production'],
      '5 /pandacon/auth_origin',
      'error wrong-type',
      `${off}auth_origin must be a word such as VO.production`,
    ],
  ] as const) {
    it(`is none with ${what}, and says where and what would be right`, async () => {
      const { server, problems } = await cfg(lines);
      expect(server).to.equal(undefined);
      expect(problems).to.deep.equal([[`panda_harvester.cfg:${key}`, said, message]]);
    });
  }

  for (const [what, lines, key, said, message] of [
    [
      'verifies TLS where Harvester would not',
      ['ca_cert = False'],
      '4 /pandacon/ca_cert',
      'warning panda-not-verified',
      'ca_cert is false, and thresher verifies the PanDA server all the same, with the authorities of the system; name the file of the authority (PEM) that signed its certificate',
    ],
    [
      'waits for a file that a renewer has not written yet',
      ['key_file = later'],
      '4 /pandacon/key_file',
      'warning file-unreadable',
      'key_file: later does not exist: the link to the PanDA server waits for it',
    ],
    [
      'needs one file of authorities, and no directory of them',
      ['ca_cert = .'],
      '4 /pandacon/ca_cert',
      'warning file-unreadable',
      'ca_cert: DIRECTORY is a directory: name one file (PEM)',
    ],
    [
      'goes on without the file of other hosts',
      ['multihost_auth_config = hosts.json'],
      '',
      'warning file-unreadable',
      'cannot read the file: ENOENT: no such file or directory',
    ],
  ] as const) {
    it(what, async () => {
      const { server, problems } = await cfg([here, 'cert_file = proxy', ...lines]);
      expect(server?.url).to.equal(url);
      const place = key === '' ? 'hosts.json:0 ' : `panda_harvester.cfg:${key}`;
      expect(problems).to.deep.equal([[place, said, message.replace('DIRECTORY', directory)]]);
    });
  }

  it('is known by the name of the host where the settings give it no id, which a warning says', async () => {
    const { problems } = await serverOf(
      'panda_harvester.cfg',
      ['[pandacon]', here, 'cert_file = proxy', ''].join('\n'),
    );
    expect(problems.map(([place, said]) => [place, said])).to.deep.equal([
      ['panda_harvester.cfg:1 /master/harvester_id', 'warning harvester-id-missing'],
    ]);
    expect(problems[0]?.[2]).to.match(
      /^harvester_id is not set, so the PanDA server knows this instance as /,
    );
  });

  const ofTokens = ['auth_type = oidc'];
  const production = 'auth_origin = wlcg.production';
  for (const [what, lines, place, message] of [
    [
      'an API of another version',
      ['server_api_url_ssl = https://h/api/v2', 'cert_file = proxy'],
      'server_api_url_ssl',
      'server_api_url_ssl has the path "/api/v2", and thresher speaks the API /api/v1; write https://HOST:PORT/api/v1',
    ],
    [
      'an origin of pilots',
      [here, ...ofTokens, 'auth_token = file:token', 'auth_origin = wlcg.pilot'],
      'auth_origin',
      `auth_origin is "wlcg.pilot": the server gives commands to VO.production, and to others only where its production_dns lists the token's subject`,
    ],
    [
      'an origin without a role',
      [here, ...ofTokens, 'auth_token = file:token', 'auth_origin = wlcg'],
      'auth_origin',
      `auth_origin is "wlcg": the server gives commands to VO.production, and to others only where its production_dns lists the token's subject`,
    ],
    [
      'the path of a token in the place of the token',
      [here, ...ofTokens, 'auth_token = /etc/panda/token', production],
      'auth_token',
      'auth_token is no JWT, and counts as the token itself; write `file:` before the path of a file',
    ],
    [
      'a file without a token',
      [here, ...ofTokens, 'auth_token = file:garbage', production],
      'auth_token',
      'auth_token: garbage holds no token (JWT): the link waits for it',
    ],
    [
      'a file without a certificate',
      [here, 'cert_file = garbage', 'key_file = key'],
      'cert_file',
      'cert_file: garbage has no certificate (PEM): the link waits for it',
    ],
    [
      'a certificate without its key',
      [here, 'cert_file = certificate'],
      'cert_file',
      'cert_file: certificate has no private key (PEM): the link waits for it',
    ],
    [
      'authorities that are none',
      [here, 'cert_file = proxy', 'ca_cert = garbage'],
      'ca_cert',
      'ca_cert: garbage has no certificate (PEM): the link waits for it',
    ],
  ] as const) {
    it(`is tried with ${what}, which a warning names`, async () => {
      const { server, problems } = await cfg(lines);
      expect(server).to.not.equal(undefined);
      expect(problems.map(([at, said, text]) => [at?.replace(/^\S+ /, ''), said, text])).to.deep.equal([
        [`/pandacon/${place}`, 'warning panda-doubtful', message],
      ]);
    });
  }

  it('warns once of a proxy that does not exist', async () => {
    const { problems } = await cfg([here, 'cert_file = later']);
    expect(problems).to.deep.equal([
      [
        'panda_harvester.cfg:3 /pandacon/cert_file',
        'warning file-unreadable',
        'cert_file: later does not exist: the link to the PanDA server waits for it',
      ],
    ]);
  });

  describe('with logins by host', () => {
    const named = [here, 'cert_file = proxy', 'multihost_auth_config = hosts.json'];
    const withHosts = (value: unknown) => {
      writeFileSync(join(directory, 'hosts.json'), JSON.stringify(value, null, 1));
      return cfg(named);
    };

    for (const host of ['panda.example.org:25443', 'panda.example.org']) {
      it(`takes those of ${host}, the settings beside it for what it does not say, and says which it needs not`, async () => {
        const { server, problems } = await withHosts({
          [host]: { auth_type: 'oidc', auth_token: 'file:token', auth_origin: 'vo.production' },
          'other.example.org:443': { cert_file: 'x' },
        });
        expect(server?.login).to.deep.equal({
          kind: 'oidc',
          token: { file: at('token') },
          origin: 'vo.production',
        });
        expect(problems).to.deep.equal([
          [
            'hosts.json:7 /other.example.org:443',
            'notice unread-setting',
            'the login of other.example.org:443 is not used: the only server is panda.example.org:25443',
          ],
        ]);
      });
    }

    it('says what is wrong in the file, and goes on with the rest', async () => {
      const { server, problems } = await withHosts({
        'panda.example.org:25443': { key_file: 5, cert: 'x', ca_cert: false },
      });
      expect(server?.login).to.deep.equal({ kind: 'x509', certFile: at('proxy'), keyFile: at('proxy') });
      expect(problems.map(([place, said]) => [place, said])).to.deep.equal([
        ['hosts.json:3 /panda.example.org:25443/key_file', 'warning wrong-type'],
        ['hosts.json:4 /panda.example.org:25443/cert', 'warning wrong-type'],
        ['hosts.json:5 /panda.example.org:25443/ca_cert', 'warning panda-not-verified'],
      ]);
    });

    for (const value of [[], 'text', { 'panda.example.org:25443': 'x' }]) {
      it(`goes on without ${JSON.stringify(value)}`, async () => {
        const { server, problems } = await withHosts(value);
        expect(server?.url).to.equal(url);
        expect(problems.map(([, said]) => said)).to.deep.equal(['warning wrong-type']);
      });
    }
  });
});

const at = (name: string) => join(directory, name);

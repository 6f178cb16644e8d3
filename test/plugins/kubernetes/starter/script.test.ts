import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { until } from '../../../support/until.ts';

const root = join(import.meta.dirname, '../../../..');
const starter = join(root, 'templates/kubernetes/pilots_starter.py');
const tls = (name: string) => readFileSync(join(root, 'test/fixtures/tls', name), 'utf8');

/** As a Pod's environment has it, and a wrapper that does what a script says. */
class Pod {
  readonly directory = temporaryDirectory();
  readonly work = join(this.directory, 'work');
  readonly #env: Readonly<Record<string, string>>;

  constructor(script: string, env: Readonly<Record<string, string>> = {}) {
    const wrapper = join(this.directory, 'wrapper.sh');
    writeFileSync(wrapper, script);
    mkdirSync(join(this.directory, 'secret'));
    writeFileSync(join(this.directory, 'secret/proxy'), tls('client.crt') + tls('client.key'), {
      mode: 0o644,
    });
    for (const name of ['token', 'key']) writeFileSync(join(this.directory, 'secret', name), `the ${name}\n`);
    this.#env = {
      PATH: process.env['PATH'] ?? '',
      TMPDIR: this.work,
      HOME: this.work,
      pilotWrapper: wrapper,
      computingSite: 'SITE',
      pandaQueueName: 'QUEUE',
      resourceType: 'SCORE',
      prodSourceLabel: 'unified',
      jobType: 'unified',
      pilotType: 'PR',
      pilotUrlOpt: '--piloturl http://pilot.example/p.tgz',
      pythonOption: '--pythonversion 3',
      pilotVersion: 'current',
      submit_mode: 'PULL',
      proxySecretPath: join(this.directory, 'secret/proxy'),
      PANDA_AUTH_ORIGIN: 'atlas.pilot',
      HARVESTER_ID: 'harvester',
      workerID: '17',
      ...env,
    };
  }

  get tokens(): Record<string, string> {
    return {
      PANDA_AUTH_DIR: join(this.directory, 'secret'),
      PANDA_AUTH_TOKEN: 'token',
      PANDA_AUTH_TOKEN_KEY: 'key',
    };
  }

  start(more: Readonly<Record<string, string>> = {}) {
    const child = spawn('python3', [starter], {
      cwd: this.directory,
      env: { ...this.#env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => (output += text));
    }
    const ended = new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    return { child, ended, output: () => output };
  }

  /** Runs to its end. */
  async run(more: Readonly<Record<string, string>> = {}) {
    const { ended, output } = this.start(more);
    return { status: await ended, output: output() };
  }
}

describe('the starter of pilots', () => {
  it("starts the wrapper with the options that Harvester's starter gives it", async () => {
    const pod = new Pod('echo "options: $*"');
    const { status, output } = await pod.run();
    expect(status).to.equal(0);
    const options = [
      `-q QUEUE -r QUEUE -s SITE -a ${pod.work} --resource-type SCORE -j unified -i PR --job-type unified`,
      '--piloturl http://pilot.example/p.tgz --pythonversion 3 --pilotversion current -w generic',
      '--pilot-user=ATLAS --url=https://pandaserver.cern.ch -d --harvester-submit-mode=PULL',
      '--allow-same-user=False',
    ];
    expect(output).to.include(`options: ${options.join(' ')}\n`);
  });

  it('gives the wrapper a proxy of its own, which its owner alone may read', async () => {
    const pod = new Pod('echo "proxy: $X509_USER_PROXY"');
    const { output } = await pod.run();
    const copy = join(pod.work, 'proxy');
    expect(output).to.include(`proxy: ${copy}\n`);
    expect(statSync(copy).mode & 0o777).to.equal(0o400);
    expect(readFileSync(copy, 'utf8')).to.include('BEGIN');
  });

  it('gives the wrapper the proxy that came as content, and not its content', async () => {
    const pod = new Pod('echo "proxy: $X509_USER_PROXY content: <$proxyContent>"', { proxySecretPath: '' });
    const { output } = await pod.run({ proxyContent: 'the content' });
    const copy = join(pod.work, 'x509proxy');
    expect(output).to.include(`proxy: ${copy} content: <>\n`);
    expect(readFileSync(copy, 'utf8')).to.equal('the content');
  });

  it('copies a token and its key to the work directory, where the pilot looks for them', async () => {
    const pod = new Pod('echo "token: $PANDA_AUTH_TOKEN"', { proxySecretPath: '' });
    const { status, output } = await pod.run(pod.tokens);
    expect({ status, token: readFileSync(join(pod.work, 'token'), 'utf8') }).to.deep.equal({
      status: 0,
      token: 'the token\n',
    });
    expect(readFileSync(join(pod.work, 'key'), 'utf8')).to.equal('the key\n');
    expect(output).to.include('token: token\n');
  });

  for (const [what, env, message] of [
    ['there is no credential', { proxySecretPath: '' }, /neither a proxy .* nor a token/],
    ['the proxy is not there', { proxySecretPath: '/no/such' }, /\/no\/such cannot be read: No such file/],
  ] as const) {
    it(`starts no pilot, says why and fails with 1 where ${what}`, async () => {
      const { status, output } = await new Pod('echo begun', env).run();
      expect(status).to.equal(1);
      expect(output).to.match(message).and.not.include('begun');
    });
  }

  for (const [script, expected] of [
    ['exit 3', 3],
    ['kill -9 $$', 137],
    ['setsid sleep 8 & exit 5', 5],
  ] as const) {
    it(`ends with ${expected} after a wrapper that does "${script}"`, async () => {
      expect((await new Pod(script).run()).status).to.equal(expected);
    });
  }

  it('hands a TERM on to the wrapper, and waits for it', async () => {
    const pod = new Pod('trap "echo told; exit 7" TERM; echo begun; while :; do sleep 0.1; done');
    const { child, ended, output } = pod.start();
    await until('the wrapper runs', () => output().includes('begun\n'));
    child.kill('SIGTERM');
    expect(await ended).to.equal(7);
    expect(output()).to.include('told\n');
  });

  it('shows the output of the wrapper as it comes and keeps it as wrapper-wid.log', async () => {
    const pod = new Pod('echo out; echo err >&2; while [ ! -e go ]; do sleep 0.1; done; echo over');
    const { ended, output } = pod.start();
    await until('both outputs are there', () => /out\nerr\n/.test(output()));
    writeFileSync(join(pod.directory, 'go'), '');
    await ended;
    expect(readFileSync(join(pod.work, 'wrapper-wid.log'), 'utf8')).to.equal('out\nerr\nover\n');
  });

  describe('with a server for logs', () => {
    let server: Server;
    let url: string;
    let seen: { what: string; headers: IncomingHttpHeaders; body: Buffer }[];
    let trust: Record<string, string>;

    beforeEach(async () => {
      seen = [];
      server = createServer({ cert: tls('server.crt'), key: tls('server.key') }, (request, response) => {
        const pieces: Buffer[] = [];
        request.on('data', (piece: Buffer) => pieces.push(piece));
        request.on('end', () => {
          const { method = '', url: path = '', headers } = request;
          seen.push({ what: `${method} ${path}`, headers, body: Buffer.concat(pieces) });
          response.end('echo "it came as $0"\n');
        });
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
      trust = { SSL_CERT_FILE: join(root, 'test/fixtures/tls/ca.crt') };
    });
    afterEach(() => {
      server.closeAllConnections();
      server.close();
    });

    const frontends = () => ({
      logs_frontend_w: `${url}/server/panda`,
      logs_frontend_r: 'https://cache.example/logs',
    });

    it('sends the packed log there under the name that it told the pilot, and ends as the wrapper did', async () => {
      const pod = new Pod('echo "tag: $GTAG"; exit 4');
      const { status, output } = await pod.run({ ...trust, ...frontends(), ...pod.tokens });
      expect(status).to.equal(4);
      expect(output).to.include('tag: https://cache.example/logs/harvester_17_gz.out\n');
      expect(seen.map(({ what }) => what)).to.deep.equal(['POST /api/v1/file_server/upload_cache_file']);
      const [request] = seen;
      expect(request?.headers).to.include({ authorization: 'Bearer the token', origin: 'atlas.pilot' });
      const { body = Buffer.alloc(0) } = request ?? {};
      expect(body.toString('latin1')).to.include('name="file"; filename="harvester_17_gz.out"');
      const packed = body.subarray(body.indexOf('\r\n\r\n') + 4, body.lastIndexOf('\r\n--'));
      expect(gunzipSync(packed).toString()).to.match(/^tag: .*\n$/);
    });

    it('sends nothing to a server that no authority vouches for, and ends as the wrapper did', async () => {
      const pod = new Pod('exit 4');
      const { status, output } = await pod.run({ ...frontends(), ...pod.tokens });
      expect({ status, seen }).to.deep.equal({ status: 4, seen: [] });
      expect(output).to.match(/the log could not be sent: .*CERTIFICATE_VERIFY_FAILED/);
    });

    it('gets the wrapper from an https address', async () => {
      const pod = new Pod('');
      const { output } = await pod.run({ ...trust, pilotWrapper: `${url}/wrapper.sh` });
      expect(output).to.include(`it came as ${join(pod.work, 'runpilot2-wrapper.sh')}\n`);
    });
  });
});

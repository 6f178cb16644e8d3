import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type InterlinkClient, podOf } from '../support/interlink-client.ts';
import { dataRoot as root, interlinkSite, untilListening } from '../support/interlink-site.ts';
import { type RunningDaemon, type Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';
import { decoded, VirtualKubelet } from '../support/virtual-kubelet.ts';

function recordsIn(site: Site): string[] {
  const directory = site.path(root, 'pods');
  return existsSync(directory) ? readdirSync(directory) : [];
}

/** Below the site, without the state of the daemon. */
function filesOf(site: Site): string[] {
  const all = readdirSync(site.directory, { recursive: true }).map(String);
  return all.filter((name) => !name.startsWith('state')).sort();
}

describe('a Pod of interLink on the local backend', () => {
  let site: Site;
  let daemon: RunningDaemon;
  let client: InterlinkClient;

  before(async () => {
    site = interlinkSite();
    daemon = site.start();
    client = await untilListening(site, daemon);
  });
  after(() => site.clean());

  it('A1, A4, A12, A14: is created, runs, ends with its own exit code, shows its log and is deleted', async () => {
    const pod = podOf(
      'first',
      randomUUID(),
      'echo one; echo two; until [ -e go ]; do sleep 0.05; done; exit 3',
    );
    const { uid } = pod.metadata;
    const created = await client.created(pod);
    expect(created.PodUID).to.equal(uid);
    expect(created.PodJID).to.match(/./);
    const file = site.path(root, 'pods', `${uid}.json`);
    expect(statSync(file).mode & 0o777).to.equal(0o600);

    await until('it runs', async () => (await client.state(pod)).running !== undefined);
    const status = await client.status(pod);
    expect(status).to.include({ UID: uid, name: 'first', namespace: 'default', JID: created.PodJID });
    await until('its log has both lines', async () => (await client.logs(uid)).text === 'one\ntwo\n');
    writeFileSync(site.path(root, 'output', uid, 'go'), '');
    const ended = await until('it has ended', async () => (await client.state(pod)).terminated);
    expect(ended.exitCode).to.equal(3);
    expect(ended.finishedAt).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect((await client.logs(uid, { Tail: 1 })).text).to.equal('two\n');
    expect((await client.logs(uid, { Bytes: 5 })).text).to.equal('one\nt');
    await until(
      'the body of the request is gone from its file',
      () => !readFileSync(file, 'utf8').includes('"data"'),
    );

    for (let again = 0; again < 3; again++) expect((await client.remove(pod)).status).to.equal(200);
    await until(
      'nothing is left of it',
      () => !existsSync(file) && !existsSync(site.path(root, 'output', uid)),
    );
    expect((await client.remove(pod)).status).to.equal(200);
  });

  it('A2: a hundred requests for one Pod give one job', async () => {
    const pod = podOf('once', randomUUID(), 'sleep 1000');
    const answers = await Promise.all(Array.from({ length: 100 }, () => client.created(pod)));
    expect(new Set(answers.map(({ PodJID }) => PodJID)).size).to.equal(1);
    expect(await client.created(pod)).to.deep.equal(answers[0]);
    const other = podOf('once', randomUUID(), 'sleep 1000');
    expect((await client.created(other)).PodJID).not.to.equal(answers[0]?.PodJID);
    expect(await site.workers()).to.have.length(3);
    for (const one of [pod, other]) expect((await client.remove(one)).status).to.equal(200);
    await until('both are gone', () => recordsIn(site).length === 0);
  });

  it('A5: a job that is killed is no success', async () => {
    const pod = podOf('killed', randomUUID(), 'kill -9 $PPID; sleep 1000');
    await client.created(pod);
    const ended = await until('it has ended', async () => (await client.state(pod)).terminated);
    expect(ended.exitCode).not.to.equal(0);
    await client.remove(pod);
  });

  it('A3: what cannot be a job is refused in one sentence, and leaves no file', async () => {
    await until('nothing is left of earlier Pods', () => recordsIn(site).length === 0);
    const before = recordsIn(site).length;
    const bad = await client.ask('POST', '/create', '{"pod": ');
    expect(bad).to.deep.equal({ status: 400, text: 'the body is no JSON' });
    const list = await client.ask('POST', '/create', [podOf('x', randomUUID(), 'true')]);
    expect(list).to.deep.equal({ status: 400, text: 'the body is a list; /create takes one object' });
    expect((await client.ask('POST', '/create', {})).text).to.match(/"pod" is missing here/);
    expect(recordsIn(site)).to.have.length(before);
  });

  it('A27: hostile names are refused with 400, and nothing is written outside of dataRoot', async () => {
    await until('nothing is left of earlier Pods', () => recordsIn(site).length === 0);
    const before = filesOf(site);
    const named = podOf('pod', randomUUID(), 'true');
    for (const name of [
      '../../x',
      '..',
      '/tmp/x',
      'a/b',
      'a\nb',
      '$(touch x)',
      ';touch x',
      '`x`',
      'a b',
      'ü',
      'x'.repeat(300),
    ]) {
      const { metadata, spec } = named;
      const pods = [
        { metadata: { ...metadata, uid: name }, spec },
        { metadata: { ...metadata, name }, spec },
        { metadata: { ...metadata, namespace: name }, spec },
      ];
      for (const pod of pods) {
        expect((await client.create(pod)).status, name).to.equal(400);
        expect((await client.remove(pod)).status, name).to.equal(400);
        expect((await client.ask('GET', '/status', [pod])).status, name).to.equal(400);
      }
      const container = { ...spec.containers[0], name };
      expect((await client.create({ metadata, spec: { ...spec, containers: [container] } })).status).to.equal(
        400,
      );
      expect((await client.logs(name, {}, name)).status, name).to.be.oneOf([400, 404]);
    }
    expect(filesOf(site)).to.deep.equal(before);
    expect(existsSync(site.path(root, 'x')) || existsSync(site.path('x')) || existsSync('x')).to.equal(false);
  });

  it('A25: curl over the unix socket gets 200, and the log has the session and the trace of the request', async () => {
    const socket = site.path('sidecar.sock');
    expect(statSync(socket).mode & 0o777).to.equal(0o600);
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const headers = [
      'Content-Type: application/json',
      'InterLink-Http-Session: GetStatus#61726',
      `traceparent: ${trace}`,
    ];
    const { stdout } = await promisify(execFile)('curl', [
      ...[
        '--silent',
        '--unix-socket',
        socket,
        '--write-out',
        '\n%{http_code}',
        '--request',
        'POST',
        '--data',
        JSON.stringify(podOf('never', randomUUID(), 'true')),
      ],
      ...headers.flatMap((header) => ['--header', header]),
      'http://unix/delete',
    ]);
    expect(stdout).to.match(/\n200$/);
    await untilSaid(daemon, 'GetStatus#61726');
    await untilSaid(daemon, trace);
  });

  it('A28: the facts of the system, and the ping; a page of a browser gets neither', async () => {
    expect(decoded('ping', (await client.ask('GET', '/status', [])).text)).to.have.property('status');
    expect((await client.ask('POST', '/status', [])).status).to.equal(200);
    expect((await client.ask('GET', '/status', [], { Origin: 'http://evil.example' })).status).to.equal(403);
    const info = JSON.parse((await client.ask('GET', '/system-info', '')).text) as Record<string, unknown>;
    expect(info).to.include({ status: 'ok', backend_connected: true });
    expect(info['timestamp']).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('the virtual kubelet sees each Pod end as its container did', async () => {
    const kubelet = new VirtualKubelet((method, path, body) => client.ask(method, path, body));
    const scripts = { good: 'true', bad: 'exit 3', killed: 'kill -9 $PPID; sleep 1000', refused: '' };
    const pods = await Promise.all(
      Object.entries(scripts).map(([name, script]) => {
        const pod = podOf(name, randomUUID(), script);
        if (script === '') Object.assign(pod.spec.containers[0] ?? {}, { command: [] });
        return kubelet.create(pod);
      }),
    );
    await until('all are over', async () => {
      await kubelet.look(pods);
      return pods.every(({ isOver }) => isOver);
    });
    expect(pods.map(({ phase }) => phase)).to.deep.equal(['Succeeded', 'Failed', 'Failed', 'Failed']);
    expect(pods[3]?.message).to.equal('container main has no script');
    for (const pod of pods) expect(await kubelet.remove(pod)).to.equal(200);
  });

  it('A25: a socket that a killed daemon left is replaced, and that of a living one is not', async () => {
    const other = interlinkSite({ socket: site.path('sidecar.sock') });
    try {
      const second = other.start();
      await untilSaid(second, `another program listens at the socket ${site.path('sidecar.sock')}`);
      expect((await client.ask('GET', '/status', [])).status).to.equal(200);
      process.kill(daemon.pid, 'SIGKILL');
      await daemon.ended;
      expect(existsSync(site.path('sidecar.sock'))).to.equal(true);
      // The second daemon takes the place by itself.
      await untilSaid(second, 'interLink is answered');
      expect((await client.ask('GET', '/status', [])).status).to.equal(200);
    } finally {
      await other.clean();
    }
  });

  it('an address that others reach is refused without consent, before anything listens there', async () => {
    const open = interlinkSite({ socket: undefined, host: '0.0.0.0', port: 0 });
    try {
      const refused = open.start();
      await untilSaid(refused, '0.0.0.0 is an address that other machines may reach');
      await untilSaid(refused, / started /);
      expect(refused.output()).not.to.include('interLink is answered');
    } finally {
      await open.clean();
    }
  });
});

import { randomUUID } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readSidecarConfig, sidecarFiles } from '../../src/daemon/interlink/daemon-files.ts';
import { readReportKey, reportToken } from '../../src/sources/interlink/reports/report-key.ts';
import { freePort } from '../env/kubernetes/ports.ts';
import { type InterlinkClient, podOf } from '../support/interlink-client.ts';
import { dataRoot, untilListening } from '../support/interlink-site.ts';
import {
  clearSpaces,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
  type ScheddKind,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite } from '../support/htcondor-site.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { until } from '../support/until.ts';

/** The Pod of one script, with an init container before it and a second container beside it. */
function threeContainers(name: string, scripts: Readonly<Record<'first' | 'main' | 'side', string>>) {
  const pod = podOf(name, randomUUID(), '');
  const container = (of: keyof typeof scripts) => ({
    name: of,
    image: 'host',
    command: ['sh', '-c', scripts[of]],
    env: null,
    resources: {},
  });
  return {
    ...pod,
    spec: {
      ...pod.spec,
      initContainers: [container('first')],
      containers: [container('main'), container('side')],
    },
  };
}

describe('logs and states of running jobs of interLink on a real pool', function () {
  this.timeout(240_000);
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;
  let daemon: RunningDaemon;
  let client: InterlinkClient;

  before(async () => {
    pool = await condorPool();
  });

  afterEach(async function () {
    if (this.currentTest?.state !== 'passed') console.log(daemon.output().slice(-6000));
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  async function start(
    kind: ScheddKind,
    options: object = {},
    more: { template?: object; http?: Record<string, unknown> } = {},
  ) {
    space = condorSpace(pool);
    const { template } = sidecarFiles({}, readSidecarConfig('', ''), '');
    const queue = { demand: 'interlink', maxWorkers: 10, nQueueLimitWorker: 10 };
    site = condorSite(
      {
        queues: { Q: condorQueue(pool, { kind, template: 'job.yaml', queue }) },
        settings: {
          master: { factoryId: space.factory },
          ...(more.http && { http: more.http }),
          sources: {
            interlink: { socket: 'sidecar.sock', dataRoot, lookInterval: 0.2, allowHost: true, ...options },
          },
        },
      },
      { 'job.yaml': { ...template, ...more.template } },
    );
    for (const directory of [site.stateDir, site.path('logs')]) mkdirSync(directory);
    chownSync(site.path('logs'), pool.uid, pool.gid);
    daemon = site.start([], condorEnvironment(pool, site.directory));
    client = await untilListening(site, daemon);
  }

  /** A file by which a test tells a job to go on. */
  const signal = (name: string) => join(space.directory, name);
  const waitFor = (name: string) => `until [ -e ${signal(name)} ]; do sleep 0.1; done`;

  it('A12, A13: come from the machine of the job, for a schedd that spools and a job that reaches no server', async () => {
    await start('remote');
    const pod = threeContainers('live', {
      first: 'echo prepared',
      main: `echo one; echo two; printf three; ${waitFor('go')}; echo; echo four; ${waitFor('end')}; echo five; exit 5`,
      side: 'echo beside; exit 3',
    });
    const { uid } = pod.metadata;
    await client.created(pod);
    let last: unknown;
    const what = () => `the states of its containers are known while it runs: ${JSON.stringify(last)}`;
    const running = await until(what, async () => {
      const { containers, initContainers } = await client.status(pod);
      last = [...initContainers, ...containers].map(({ state }) => state);
      const [main, side] = containers.map(({ state }) => state);
      return (
        main?.running &&
        side?.terminated && { side: side.terminated, first: initContainers[0]?.state.terminated }
      );
    });
    expect(running.side.exitCode).to.equal(3);
    expect(running.first?.exitCode).to.equal(0);
    expect(existsSync(site.path(dataRoot, 'output', uid, 'main.log'))).to.equal(false);

    const all = 'one\ntwo\nthree';
    const shown = async (opts: object = {}, container = 'main') =>
      (await client.logs(uid, opts, container)).text;
    await until('all lines are there', async () => (await shown()) === all);
    expect(await shown({ Tail: 1 })).to.equal('three');
    expect(await shown({ Tail: 2 })).to.equal('two\nthree');
    expect(await shown({ Bytes: 5 })).to.equal('one\nt');
    expect(await shown({ SinceSeconds: 3600 })).to.equal(all);
    expect(await shown({ SinceTime: '2099-01-01T00:00:00Z' })).to.equal('');
    expect(await shown({ Timestamps: true, Tail: 1 })).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ three$/);
    expect(await shown({}, 'first')).to.equal('prepared\n');
    expect(await shown({}, 'side')).to.equal('beside\n');
    expect((await client.logs(uid, {}, 'none')).status).to.equal(400);

    const followed = await client.follow(uid, { Tail: 2 });
    expect(followed.status).to.equal(200);
    await until('it has the last lines', () => followed.text === 'two\nthree');
    const left = await client.follow(uid);
    await until('it has all lines', () => left.text === all);
    left.stop();
    writeFileSync(signal('go'), '');
    await until('it has the next line', () => followed.text === 'two\nthree\nfour\n', 20_000);
    expect(followed.hasEnded).to.equal(false);
    writeFileSync(signal('end'), '');
    await until('it ends', () => followed.hasEnded);
    expect(followed.text).to.equal('two\nthree\nfour\nfive\n');

    const ended = await until('the Pod has ended', async () => (await client.state(pod)).terminated);
    expect(ended.exitCode).to.equal(5);
    const whole = `${all}\nfour\nfive\n`;
    expect(await shown()).to.equal(whole);
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    client = await untilListening(site, site.start([], condorEnvironment(pool, site.directory)));
    expect(await shown()).to.equal(whole);
    expect(await shown({ Follow: true, Tail: 1 })).to.equal('five\n');
    expect((await client.remove(pod)).status).to.equal(200);
    const gone = await until('the Pod is forgotten', async () => {
      const answer = await client.logs(uid);
      return answer.status === 404 && answer.text;
    });
    expect(gone).to.match(/^no Pod with the UID .* is known$/);
  });

  it('defect 10: a job whose runner ends before it can report is an end in its words, and no hold', async () => {
    const commandPrefix = "exec sh -c 'echo the machine is not ready >&2; exit 9'";
    await start('remote', { commandPrefix });
    const pod = threeContainers('early', { first: 'true', main: 'true', side: 'true' });
    await client.created(pod);
    const ended = await until('the Pod has ended', async () => {
      const { terminated, waiting } = await client.state(pod);
      if (waiting?.reason === 'JobHeld') return waiting;
      return terminated;
    });
    expect(ended).to.include({ exitCode: 9 });
    expect(ended.message).to.contain('the machine is not ready');
    expect(await client.logs(pod.metadata.uid)).to.include({ status: 200, text: '' });
  });

  it('A4: a job sends its report to the HTTP server, and no stranger does', async () => {
    const port = await freePort();
    const reports = `http://127.0.0.1:${port}/sources/interlink/reports`;
    // HTCondor shows no file of such a job: its report alone can tell.
    const template = { pod_files: undefined, transfer_output_files: undefined };
    await start('remote', { reportUrl: reports }, { template, http: { enabled: true, port } });
    const pod = threeContainers('told', {
      first: 'true',
      main: `echo one; ${waitFor('end')}; exit 5`,
      side: 'exit 3',
    });
    const { uid } = pod.metadata;
    await client.created(pod);
    const side = await until('the end of one container is known', async () => {
      const [main, beside] = (await client.status(pod)).containers;
      return main?.state.running && beside?.state.terminated;
    });
    expect(side.exitCode).to.equal(3);
    const log = await until('its log is said to come later', async () => {
      const answer = await client.logs(uid);
      return answer.status === 503 && answer.text;
    });
    expect(log).to.match(/cannot be had now: .*; it comes with the end of the job$/);

    const key = readReportKey(site.path(dataRoot, 'report.key'), false);
    const done = { init: false, state: 'terminated', exitCode: 0, ready: false, restarts: 0 };
    const forged = JSON.stringify({ version: 1, containers: { main: done, side: done } });
    const send = async (token: string, of = uid) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const answer = await fetch(`${reports}/${of}`, { method: 'POST', headers, body: forged });
      return [answer.status, await answer.text()] as const;
    };
    const other = randomUUID();
    expect((await send('x'))[0]).to.equal(401);
    expect((await send(reportToken(key, other)))[0]).to.equal(401);
    expect(await send(reportToken(key, other), other)).to.deep.equal([200, '{"result":"without effect"}']);
    expect((await fetch(`${reports}/${uid}`, { method: 'POST', body: forged })).status).to.equal(401);
    const { containers } = await client.status(pod);
    expect(containers[0]?.state.running).not.to.equal(undefined);
    expect(containers[1]?.state.terminated?.exitCode).to.equal(3);

    const followed = await client.follow(uid);
    expect(followed.status).to.equal(200);
    writeFileSync(signal('end'), '');
    await until('the log has come with the job', () => followed.hasEnded);
    expect(followed.text).to.equal('one\n');
    await until('the Pod has ended', () => existsSync(site.path(dataRoot, 'output', uid, 'main.log')));
    const ended = await until('the end is shown', async () => (await client.state(pod)).terminated);
    expect(ended.exitCode).to.equal(5);
    // A replay after the end, with the token of the job.
    expect(await send(reportToken(key, uid))).to.deep.equal([200, '{"result":"without effect"}']);
    expect((await client.state(pod)).terminated?.exitCode).to.equal(5);
  });
});

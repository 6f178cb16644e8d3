/** Probes, hooks, needs and annotations of Pods: on a real schedd that spools, in a real apptainer, while they run. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import type { Container, CreateStruct, PodStatus } from '../../src/clients/interlink/wire.ts';
import { freePort } from '../env/kubernetes/ports.ts';
import type { Answered } from '../support/interlink-client.ts';
import { open, PodSite, type SentPod } from '../support/interlink-pods.ts';
import { sendRecorded } from '../support/interlink-recorded.ts';
import { until } from '../support/until.ts';

const sh = (script: string): Partial<Container> => ({ command: ['sh', '-c', script] });
/** Ends by itself only when the test opens the gate "stop". */
const untilStopped = 'until [ -e /gate/stop ]; do sleep 1; done';
const mounted = { volumeMounts: [{ name: 'gate', mountPath: '/gate' }] };
const gateVolume = (path: string) => ({ volumes: [{ name: 'gate', hostPath: { path } }] });
/** Patient, since apptainer may take seconds to start on a loaded machine. */
const timing = { periodSeconds: 1, timeoutSeconds: 60 };
const cat = (path: string) => ({ exec: { command: ['cat', path] } });
const notReady = 'Waiting for probes to be ready.';

describe('on a real schedd, a running Pod of interLink', function () {
  this.timeout(240_000);
  let site: PodSite;
  const gates: Record<'probes' | 'hooks' | 'annotations', string> = {
    probes: '',
    hooks: '',
    annotations: '',
  };
  let probes: SentPod;
  let hooks: SentPod;
  let needs: SentPod;
  let annotated: SentPod;
  let scripted: SentPod;
  let hosted: SentPod;
  let created: Promise<Answered>;

  before(async () => {
    site = await PodSite.start();
    for (const name of ['probes', 'hooks', 'annotations'] as const) gates[name] = site.gate(name);
    const [http, tcp] = [await freePort(), await freePort()];
    const serve = (port: number) => `busybox httpd -p 127.0.0.1:${port} -h /gate`;
    probes = site.send('probes', {
      spec: { ...gateVolume(gates.probes), terminationGracePeriodSeconds: 10 },
      containers: [
        {
          name: 'http',
          ...sh(`${serve(http)}; ${untilStopped}`),
          ...mounted,
          ports: [{ name: 'web', containerPort: http }],
          readinessProbe: { httpGet: { path: '/healthz', port: 'web' }, ...timing, failureThreshold: 1 },
        },
        {
          name: 'tcp',
          ...sh(`until [ -e /gate/listen ]; do sleep 1; done; ${serve(tcp)}; ${untilStopped}`),
          ...mounted,
          readinessProbe: { tcpSocket: { port: tcp }, ...timing },
        },
        {
          name: 'exec',
          ...sh('while :; do sleep 1; done'),
          ...mounted,
          startupProbe: { ...cat('/gate/started'), ...timing, failureThreshold: 1000 },
          livenessProbe: { ...cat('/gate/alive'), ...timing, failureThreshold: 2 },
        },
        {
          name: 'never',
          ...sh('while :; do sleep 1; done'),
          startupProbe: { exec: { command: ['false'] }, ...timing, failureThreshold: 2 },
        },
      ],
    });
    hooks = site.send('hooks', {
      spec: { ...gateVolume(gates.hooks), terminationGracePeriodSeconds: 60 },
      containers: [
        {
          ...sh(
            `echo "of the container" >/tmp/mark; trap 'echo term >>/gate/ended; exit 0' TERM; ${untilStopped}`,
          ),
          ...mounted,
          lifecycle: {
            postStart: {
              exec: {
                command: ['sh', '-c', 'until [ -e /tmp/mark ]; do sleep 1; done; cat /tmp/mark >/gate/post'],
              },
            },
            preStop: { exec: { command: ['sh', '-c', 'cat /tmp/mark >/gate/pre; echo pre >>/gate/ended'] } },
          },
        },
      ],
    });
    needs = site.send('needs', {
      initContainers: [
        { name: 'init', ...sh('true'), resources: { requests: { cpu: '3500m', memory: '1Gi' } } },
      ],
      containers: [
        {
          ...sh('true'),
          resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1', memory: '1.5Gi' } },
        },
        {
          name: 'beside',
          ...sh('true'),
          resources: {
            requests: { cpu: '1500m', memory: '1e9', 'ephemeral-storage': '1Gi', 'nvidia.com/gpu': '2' },
            limits: { 'nvidia.com/gpu': '2' },
          },
        },
      ],
    });
    const gate = gates.annotations;
    annotated = site.send('annotated', {
      annotations: {
        'slurm-job.vk.io/flags': '+MaxRuntime=77\n+Note = "a; b"\npriority = 7; --time=10',
        'interlink.eu/wstunnel-client-commands': `echo tunnel >>'${gate}/before'`,
        'slurm-job.vk.io/pre-exec': `cat >>'${gate}/before' <<'END'\nmesh $HOME\nEND\n`,
        'slurm-job.vk.io/singularity-options': '--writable-tmpfs --cleanenv',
        'slurm-job.vk.io/singularity-mounts': `--bind ${gate}:/mounted`,
        'slurm-job.vk.io/image-root': `${dirname(site.image)}/`,
      },
      containers: [
        {
          ...sh(
            'cat /mounted/before; echo made >/made && cat /made; until [ -e /mounted/stop ]; do sleep 1; done',
          ),
          image: basename(site.image),
        },
      ],
    });
    scripted = site.send('scripted', {
      containers: [{ ...sh('echo in the image') }, { name: 'beside', ...sh('echo in the image') }],
      jobScript: '#!/bin/sh\necho "a script of interLink: $HOME" | tr a-z A-Z\nexit 3\n',
    });
    hosted = site.send('hosted', {
      spec: { volumes: [{ name: 'own', emptyDir: {} }] },
      annotations: { 'slurm-job.vk.io/singularity-options': '--writable-tmpfs' },
      containers: [
        {
          image: 'host',
          ...sh('[ -e /usr ] && echo "out of the image"; echo "$GREETING" "$@"'),
          args: ['sh', 'two  words'],
          env: [{ name: 'GREETING', value: 'hello  $HOME' }],
          volumeMounts: [{ name: 'own', mountPath: '/own' }],
        },
      ],
    });
    created = sendRecorded(site.address, 'POST-create', site.image);
    // Its test says what came.
    created.catch(() => undefined);
  });

  after(async () => {
    await site.clean();
  });

  it('A22: asks for the sum of its containers, or for what an init container needs more', async () => {
    const jid = await needs.jid;
    const attributes = ['RequestCpus', 'RequestMemory', 'RequestDisk', 'RequestGPUs'];
    // 1536 MiB and 1e9 bytes; the init container needs 4 cores.
    expect(await site.job(jid, attributes)).to.deep.equal({
      RequestCpus: 4,
      RequestMemory: 2490,
      RequestDisk: 1024 * 1024,
      RequestGPUs: 2,
    });
    // No machine of the pool has GPUs.
    const { waiting } = await needs.state('main');
    expect(waiting).to.include({ reason: 'ContainerCreating' });
    expect((await site.client.remove(needs.pod)).status).to.equal(200);
    await until('its job is gone', async () => (await site.job(jid)) === undefined);
  });

  it('A23: has the flags in its job, and runs pre-exec, options and the image root of its annotations', async () => {
    const jid = await annotated.jid;
    await annotated.until('main', 'running');
    const ad = await site.job(jid, ['MaxRuntime', 'Note', 'JobPrio']);
    expect(ad).to.deep.equal({ MaxRuntime: 77, Note: 'a; b', JobPrio: 7 });
    open(gates.annotations, 'stop');
    expect(await annotated.says()).to.equal('tunnel\nmesh $HOME\nmade\n');
  });

  it('A24: runs the jobScript of interLink in the place of its containers', async () => {
    const { main, beside } = await scripted.ends();
    expect(main).to.include({ exitCode: 3 });
    expect(beside).to.include({ exitCode: 3 });
    expect(await scripted.log()).to.match(/^A SCRIPT OF INTERLINK: /);
  });

  it('runs its command on the machine itself where its image is "host"', async () => {
    expect(await hosted.says()).to.equal('out of the image\nhello  $HOME two  words\n');
  });

  it('A20: waits for its probes by HTTP, TCP and command, and ends by its liveness probe', async () => {
    const waits = (name: string) =>
      until(`${name} waits`, async () => (await probes.state(name)).waiting?.reason === notReady);
    for (const name of ['http', 'tcp', 'exec']) await waits(name);
    const never = await probes.until('never', 'terminated');
    expect(never.exitCode).to.be.greaterThan(0);
    expect(never.message).to.equal('the startup probe failed 2 times');

    open(gates.probes, 'healthz');
    await probes.until('http', 'running');
    // Its liveness probe would have failed all the time: the startup probe holds it back.
    for (const name of ['tcp', 'exec'])
      expect(await probes.state(name), name).to.deep.equal({ waiting: { reason: notReady } });
    open(gates.probes, 'listen');
    await probes.until('tcp', 'running');
    open(gates.probes, 'alive');
    open(gates.probes, 'started');
    await probes.until('exec', 'running');

    rmSync(join(gates.probes, 'alive'));
    const ended = await probes.until('exec', 'terminated');
    expect(ended.exitCode).to.be.oneOf([137, 143]);
    expect(ended.message).to.equal('the liveness probe failed 2 times');
    rmSync(join(gates.probes, 'healthz'));
    await waits('http');
    open(gates.probes, 'stop');
    const ends = await probes.ends();
    expect(ends['http']).to.include({ exitCode: 0 });
    expect(ends['tcp']).to.include({ exitCode: 0 });
  });

  it('A21: runs postStart after its start, and on /delete preStop and then SIGTERM, each in its container', async () => {
    await hooks.until('main', 'running');
    expect(readFileSync(join(gates.hooks, 'post'), 'utf8')).to.equal('of the container\n');
    expect(existsSync(join(gates.hooks, 'pre'))).to.equal(false);
    expect((await site.client.remove(hooks.pod)).status).to.equal(200);
    const jid = await hooks.jid;
    await until('its job is gone', async () => (await site.job(jid)) === undefined);
    await until('its container has ended', () => {
      const ended = readFileSync(join(gates.hooks, 'ended'), 'utf8');
      return ended === 'pre\nterm\n';
    });
    expect(readFileSync(join(gates.hooks, 'pre'), 'utf8')).to.equal('of the container\n');
    await until('its files are gone', () => !existsSync(site.output(hooks.uid)));
  });

  it('that a real virtual kubelet sent runs through create, status, logs and delete, with only its image swapped', async () => {
    const ask = (name: string) => sendRecorded(site.address, name, site.image);
    const { status, text } = await created;
    expect(status, text).to.equal(200);
    const { PodUID, PodJID } = JSON.parse(text) as CreateStruct;
    expect(PodUID).to.equal('d6795d3f-d7a0-42b6-8932-68ea81c8af0f');
    const ad = await site.attributes(PodJID, ['MaxRuntime', 'RequestCpus', 'RequestMemory']);
    expect(ad).to.deep.equal({ MaxRuntime: 600, RequestCpus: 1, RequestMemory: 1536 });
    expect((await ask('GET-status-ping')).status).to.equal(200);

    let last = '';
    const shown = await until(
      () => `all has ended: ${last}`,
      async () => {
        const answer = await ask('GET-status');
        last = answer.text;
        const [pod] = JSON.parse(answer.text) as PodStatus[];
        return pod?.containers.every(({ state }) => state.terminated !== undefined) === true && pod;
      },
    );
    expect(shown).to.include({ name: 'rich', namespace: 'default', UID: PodUID, JID: PodJID });
    const codes = [...shown.initContainers, ...shown.containers].map(
      ({ name, state }) => [name, state.terminated?.exitCode, state.terminated?.message] as const,
    );
    expect(codes).to.deep.equal([
      ['prepare', 0, undefined],
      ['main', 0, undefined],
      ['side', 0, undefined],
    ]);

    await until('its job has left the queue', async () => (await site.job(PodJID)) === undefined);
    const words = 'line one\nline "two" $HOME\nhello "world"; $HOME `id` ü\n';
    expect(await ask('GET-getLogs0')).to.deep.equal({ status: 200, text: words });
    const stamped = await ask('GET-getLogs1');
    expect(stamped.status).to.equal(200);
    // The lines of its last 10 seconds: on a slow machine there are none any more.
    const lines = stamped.text.split('\n').map((line) => line.replace(/^\d{4}-\d\d-\d\dT[\d:.]+Z /, ''));
    expect(words.endsWith(lines.join('\n')), stamped.text).to.equal(true);
    expect(await ask('GET-getLogs2')).to.deep.equal({ status: 200, text: '' });

    expect((await ask('POST-delete')).status).to.equal(200);
    await until('its files are gone', () => !existsSync(site.output(PodUID)));
    expect((await ask('POST-delete')).status).to.equal(200);
  });
});

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { CreateStruct, PingResponse, PodStatus } from '../../src/clients/interlink/wire.ts';
import { toolEnvironment } from '../../src/clients/credentials/environment.ts';
import { condorVariables } from '../../src/daemon/interlink/condor-flags.ts';
import { type Apptainer, apptainer } from '../support/apptainer.ts';
import { InterlinkCommand } from '../support/interlink-command.ts';
import { clearSpaces, condorPool, type Pool } from '../support/htcondor.ts';
import { untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);

/** As in the original's repository. */
const original = { CommandPrefix: '', ExportPodData: true, DataRootFolder: '.interlink/' };

describe('thresher interlink, as the original is started', () => {
  let pool: Pool;
  let runtime: Apptainer;
  let command: InterlinkCommand;

  before(async () => {
    pool = await condorPool();
    runtime = await apptainer();
  });

  after(() => {
    runtime[Symbol.dispose]();
  });

  afterEach(async () => {
    await command.site.clean();
    await clearSpaces(
      pool,
      existsSync(command.site.path('.interlink/thresher/state/factory')) ? [command.space()] : [],
    );
  });

  function podOf(name: string, container: Readonly<Record<string, unknown>>) {
    const uid = randomUUID();
    const metadata = { name, namespace: 'default', uid };
    const resources = { requests: { cpu: '1', memory: '100Mi' } };
    const one = { name: 'busybox', resources, ...container };
    const image = String(container['image']);
    return {
      uid,
      created: { pod: { metadata, spec: { containers: [one] } }, container: [] },
      // Its status is asked for with less, as the examples do.
      asked: [{ metadata, spec: { containers: [{ name: 'busybox', image }] } }],
      named: { metadata },
    };
  }

  async function statusOf({ asked }: ReturnType<typeof podOf>): Promise<PodStatus> {
    const [first] = (await command.json('GET', '/status', asked)) as PodStatus[];
    if (first === undefined) throw new Error('/status answered an empty list');
    return first;
  }

  const codeOf = async (pod: ReturnType<typeof podOf>) => {
    const [container] = (await statusOf(pod)).containers;
    return container?.state.terminated?.exitCode;
  };

  const logOf = async ({ uid }: ReturnType<typeof podOf>) => {
    const named = { Namespace: 'default', PodUID: uid, PodName: 'test-pod', ContainerName: 'busybox' };
    const unset = { Tail: 0, Bytes: 0, Timestamps: false, Follow: false, Previous: false, SinceSeconds: 0 };
    const Opts = { ...unset, SinceTime: '0001-01-01T00:00:00Z' };
    return (await command.curl('GET', '/getLogs', { ...named, Opts })).text;
  };

  it('A10, A11, A28: answers each line of its page, runs Pods by apptainer and on the host, and finds them again after a crash', async () => {
    command = await InterlinkCommand.on(pool, {
      ...original,
      SingularityPath: `${runtime.bin}/apptainer`,
      Taints: [{ key: 'drain', effect: 'NoSchedule' }],
      Colour: 'blue',
      thresher: { imagePaths: [runtime.image], allowHost: true },
    });
    const daemon = await command.started();
    expect(daemon.output()).to.include('SidecarConfig.yaml: Colour has no effect');

    const ping = () => command.json('GET', '/status', []) as Promise<PingResponse>;
    const resources = await until('the pool told its resources', async () => (await ping()).resources);
    expect(Number(resources.cpu)).to.be.greaterThan(0);
    expect(resources.memory).to.match(/^\d+Mi$/);
    expect(resources).not.to.have.any.keys('accelerators', 'pods');
    expect(await ping()).to.deep.equal({
      message: 'HTCondor sidecar is alive',
      status: 'healthy',
      resources,
      taints: [{ key: 'drain', effect: 'NoSchedule' }],
    });

    const script = 'echo "in $0"; sleep 1; exit "$1"';
    const inImage = podOf('test-pod', {
      image: runtime.image,
      command: ['sh', '-c', script, 'apptainer', '0'],
    });
    const onHost = podOf('on-host', { image: 'host', command: ['sh', '-c', script, 'host', '3'] });
    const [{ PodJID }] = (await Promise.all(
      [inImage, onHost].map(({ created }) => command.json('POST', '/create', created)),
    )) as [CreateStruct];
    expect(PodJID).to.match(/^\d+\.\d+$/);
    const running = await statusOf(inImage);
    expect(running).to.include({ name: 'test-pod', UID: inImage.uid, namespace: 'default', JID: PodJID });
    expect(running.initContainers).to.deep.equal([]);
    expect(running.containers).to.have.length(1);
    expect(running.containers[0]).to.include({ name: 'busybox', restartCount: 0, image: runtime.image });

    const second = command.start();
    expect(await second.ended).to.equal(1);
    expect(second.output())
      .to.include('another thresher interlink works on')
      .and.include('[already-running]');
    daemon.process.kill('SIGKILL');
    await daemon.ended;
    await command.started();

    await until('the container in its image has ended', async () => (await codeOf(inImage)) === 0);
    await until('the one on the host has ended', async () => (await codeOf(onHost)) === 3);
    await until('both logs are there', async () => {
      const logs = [await logOf(inImage), await logOf(onHost)];
      return logs.join() === 'in apptainer\n,in host\n';
    });
    expect(await command.json('POST', '/create', inImage.created)).to.include({ PodJID });

    const info = await until('the pool told its totals', async () => {
      const answer = (await command.json('GET', '/system-info')) as Record<string, unknown>;
      return answer['condor_status_output'] === undefined ? undefined : answer;
    });
    expect(info).to.include({ status: 'ok', backend_connected: true, htcondor_connected: true });
    expect(info['condor_status_output']).to.match(/Total/);
    expect(Date.parse(String(info['timestamp']))).to.be.closeTo(Date.now(), 60_000);

    expect(await command.json('POST', '/delete', inImage.named)).to.include({
      podUID: inImage.uid,
      podName: 'test-pod',
    });
    expect((await command.curl('POST', '/delete', onHost.named)).status).to.equal(200);
    const left = [inImage, onHost].map(({ uid }) => command.site.path('.interlink/output', uid));
    await until('nothing is left of them', () => left.every((path) => !existsSync(path)));
  });

  it('A10: is not ready where the schedd was not there from the start on, and says which', async () => {
    command = await InterlinkCommand.on(pool, original);
    await command.started([...command.flags, '--schedd-name', 'nosuch@pool.test']);
    await until('it says why', async () => {
      const { status, text } = await command.curl('GET', '/status', []);
      return status === 503 && text.includes('nosuch@pool.test');
    });
    const info = (await command.json('GET', '/system-info')) as Record<string, unknown>;
    expect(info).to.include({ status: 'warning', backend_connected: false, htcondor_connected: false });
  });

  it('logs in as the flags say, and logs what HTCondor says of it', async () => {
    command = await InterlinkCommand.on(pool, original);
    const token = command.site.path('token');
    const login = ['--auth-method', 'KERBEROS', '--debug', 'D_SECURITY', '--proxy', token];
    const daemon = await command.started([...command.flags, ...login]);
    expect(daemon.output()).to.include(`--proxy: ${token} is not there; Pods are refused until it is`);
    await untilSaid(daemon, 'a command of HTCondor said');
    await untilSaid(daemon, 'Auth methods: KERBEROS');
    const ping = await until('the ping says why', async () => {
      const { status, text } = await command.curl('GET', '/status', []);
      return status === 503 && text.includes('authenticat') ? text : undefined;
    });
    expect(ping).not.to.include('HANDSHAKE');
  });

  it('A10: is not ready before the proxy of its flags is there', async () => {
    command = await InterlinkCommand.on(pool, original);
    await command.started([...command.flags, '--proxy', command.site.path('proxy')]);
    await until('the ping says why', async () => {
      const { status, text } = await command.curl('GET', '/status', []);
      return status === 503 && text.includes(command.site.path('proxy'));
    });
  });

  it('A11: tells the node what the script of the operator prints, and its changes', async () => {
    command = await InterlinkCommand.on(pool, {
      ...original,
      ClusterResourcesScript: './resources.sh 7',
      thresher: { capacityInterval: 0.5 },
    });
    const writes = (json: string) => {
      writeFileSync(command.site.path('resources.sh'), `#!/bin/sh\necho '${json}'\n`, { mode: 0o755 });
    };
    writes('{"resources": {"cpu": 48, "memory": "lots"}}');
    const daemon = await command.started();
    const tells = (expected: object) =>
      until(`the ping tells ${JSON.stringify(expected)}`, async () => {
        const { resources } = (await command.json('GET', '/status', [])) as PingResponse;
        return JSON.stringify(resources) === JSON.stringify(expected);
      });
    await tells({ cpu: '48' });
    await untilSaid(daemon, 'resources.memory is');
    writes('{"resources": {"cpu": "64", "memory": "1Ti"}}');
    await tells({ cpu: '64', memory: '1Ti' });
    writes('nothing');
    await untilSaid(daemon, 'capacityScript printed no JSON object');
    await tells({ cpu: '64', memory: '1Ti' });
  });

  it('submits a dummy in the place of a Pod, and says so', async () => {
    command = await InterlinkCommand.on(pool, { ...original, thresher: { dummySeconds: 1 } });
    const daemon = await command.started([...command.flags, '--dummy-job']);
    expect(daemon.output()).to.include('no container of a Pod will run: each job is a dummy that sleeps');
    const pod = podOf('dummy', { image: 'docker://no.such.registry/x', command: ['false'] });
    await command.json('POST', '/create', pod.created);
    await untilSaid(daemon, 'its job is a dummy that sleeps 1 s: no container runs');
    await until('the dummy has ended well', async () => (await codeOf(pod)) === 0);
  });

  it('gives each setting to HTCondor under the name that HTCondor reads', async () => {
    command = await InterlinkCommand.on(pool, original);
    const flags = { proxy: '/t', cadir: '/ca', certfile: '/c', keyfile: '/k', authMethod: 'SCITOKENS' };
    const own = { ...process.env, CONDOR_CONFIG: pool.local.config, ...condorVariables(flags) };
    const names = ['SCITOKENS_FILE', 'SEC_CLIENT_AUTHENTICATION_METHODS'];
    const ssl = ['CADIR', 'CERTFILE', 'KEYFILE'].map((name) => `AUTH_SSL_CLIENT_${name}`);
    const { stdout } = await run(`${pool.programs}/condor_config_val`, [...names, ...ssl], {
      env: toolEnvironment(own),
    });
    expect(stdout.trim().split('\n')).to.deep.equal(['/t', 'SCITOKENS', '/ca', '/c', '/k']);
  });
});

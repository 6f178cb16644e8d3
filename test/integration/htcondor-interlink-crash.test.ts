import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Step } from '../../src/agents/queue-runtime.ts';
import { condorPool, ownPool, type Pool, scheddPid } from '../support/htcondor.ts';
import {
  InterlinkCondor,
  nowhere,
  type TestPod,
  untilEnded,
  untilRuns,
} from '../support/interlink-condor.ts';
import { untilListening } from '../support/interlink-site.ts';
import { until } from '../support/until.ts';

const waiting = 'echo start >> starts; until [ -e go ]; do sleep 0.1; done; exit 7';

const steps = [
  ['before the rows', 'submit:before-intent'],
  ['after the rows', 'submit:after-intent'],
  ['before the outcomes are written', 'submit:before-outcome'],
  ['between the commit of news and their delivery', 'news:before-told'],
] as const satisfies readonly (readonly [string, Step])[];

describe('a Pod of interLink on HTCondor, through crashes of the daemon', function () {
  this.timeout(240_000);
  let pool: Pool;
  let condor: InterlinkCondor;

  before(async () => {
    pool = await condorPool();
  });
  beforeEach(() => {
    condor = new InterlinkCondor(pool);
  });
  afterEach(() => condor.clean());

  const cases: readonly (readonly [string, string | ((pod: TestPod) => string)])[] = [
    ...steps,
    ['after the Pod is written down', ({ metadata: { uid } }) => `after ${uid}.json "data"`],
  ];
  for (const [description, step] of cases)
    it(`A2, A26: it has one job, whose statuses go on, after SIGKILL ${description}`, async () => {
      const pod = condor.pod('crash', waiting);
      const at = typeof step === 'string' ? step : step(pod);
      const crashing = condor.site.startCrashingAt(at, condor.environment);
      const first = await untilListening(condor.site, crashing);
      await first.create(pod).catch(() => undefined);
      expect(await crashing.ended, crashing.output()).to.equal('SIGKILL');

      const { client } = await condor.start();
      const created = await client.created(pod);
      expect(await client.created(pod)).to.deep.equal(created);
      await untilRuns(client, pod);
      expect(await condor.jobIds()).to.deep.equal([created.PodJID]);
      await until('its container has started', () => condor.read(pod, 'starts') === 'start\n');
      condor.put(pod, 'go');
      expect((await untilEnded(client, pod)).exitCode).to.equal(7);
      expect(condor.read(pod, 'starts')).to.equal('start\n');
    });

  it('A14: nothing is left of it after SIGKILL when its /delete was written down, without another /delete', async () => {
    const pod = condor.pod('forgotten', 'true', nowhere);
    const crashing = condor.site.startCrashingAt(
      `after ${pod.metadata.uid}.json "deleted"`,
      condor.environment,
    );
    const first = await untilListening(condor.site, crashing);
    await first.created(pod);
    await first.remove(pod).catch(() => undefined);
    expect(await crashing.ended, crashing.output()).to.equal('SIGKILL');
    await condor.start();
    await until('its job is gone', async () => (await condor.jobIds()).length === 0);
    await until('its files are gone', () => !condor.isLeft(pod));
  });
});

describe('Pods of interLink on a schedd that is killed', function () {
  this.timeout(240_000);
  let pool: Awaited<ReturnType<typeof ownPool>>;
  let condor: InterlinkCondor;

  before(async () => {
    pool = await ownPool();
    condor = new InterlinkCondor(pool);
  });
  after(async () => {
    await condor.clean();
    await pool.stop();
  });

  it('run on, are created, end and are deleted, each once', async () => {
    const { client, daemon } = await condor.start();
    const [goesOn, gone, meanwhile] = ['goes-on', 'gone', 'meanwhile'].map((name) =>
      condor.pod(name, waiting),
    );
    if (goesOn === undefined || gone === undefined || meanwhile === undefined) throw new Error('no Pods');
    const created = await Promise.all([goesOn, gone].map((pod) => client.created(pod)));
    for (const pod of [goesOn, gone]) {
      await untilRuns(client, pod);
      await until('its container has started', () => condor.read(pod, 'starts') === 'start\n');
    }
    const before = scheddPid(pool, 'local');
    process.kill(before, 'SIGKILL');
    const late = client.created(meanwhile);
    expect((await client.remove(gone)).status).to.equal(200);
    expect(Object.keys(await client.state(goesOn)), 'nothing is concluded from silence').to.deep.equal([
      'running',
    ]);
    await until('the next schedd runs', () => scheddPid(pool, 'local') !== before);

    const { PodJID } = await late.catch((error: unknown) => {
      throw new Error(`${String(error)}\n${daemon.output().slice(-3000)}`);
    });
    await until('its container has started', () => condor.read(meanwhile, 'starts') === 'start\n');
    await until('the deleted one is gone', () => !condor.isLeft(gone));
    expect(await condor.jobIds()).to.deep.equal([created[0]?.PodJID, PodJID].sort());
    for (const pod of [goesOn, meanwhile]) {
      condor.put(pod, 'go');
      expect((await untilEnded(client, pod)).exitCode).to.equal(7);
      expect(condor.read(pod, 'starts')).to.equal('start\n');
    }
    expect((await client.remove(condor.pod(`unknown-${randomUUID()}`, 'true'))).status).to.equal(200);
  });
});

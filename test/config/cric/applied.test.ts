import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { requirementsOf } from '../../../src/agents/submission/worker-maker.ts';
import type { QueueConfig, QueueVerdict } from '../../../src/config/queues/queues.ts';
import type { JsonObject } from '../../../src/util/json.ts';
import { judgeWithCric } from '../../support/cric-site.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const fixture = resolve(import.meta.dirname, '../../fixtures/cric/pandaqueues.json');
const all = JSON.parse(readFileSync(fixture, 'utf8')) as Readonly<Record<string, JsonObject>>;
// A queue whose name ends in _TEMPLATE is a template.
const entries: JsonObject = { ...all, BROKEROFF: { ...all.TEST_TEMPLATE, panda_resource: 'BROKEROFF' } };

/** A pull queue of HTCondor that says little itself. Its template asks for every size. */
const condor = (submitter: JsonObject, own: JsonObject = {}): JsonObject => ({
  mapType: 'NoJob',
  submitter: {
    name: 'HTCondorSubmitter',
    module: 'thresher/htcondor',
    templateFile: 'ups.sdf',
    ...submitter,
  },
  monitor: { name: 'HTCondorMonitor', module: 'thresher/htcondor' },
  sweeper: { name: 'HTCondorSweeper', module: 'thresher/htcondor' },
  maxWorkers: 10,
  ...own,
});

const ups = [
  'executable = /bin/true',
  'universe = grid',
  'grid_resource = arc {ceEndpoint}',
  '+memory = {requestRam}',
  '+disk = {requestDisk}',
  '+wall = {requestWalltime}',
  'queue 1',
].join('\n');

describe('a queue with an entry of CRIC', () => {
  let directory: string;
  beforeEach(() => {
    directory = temporaryDirectory();
    writeFileSync(join(directory, 'ups.sdf'), ups);
  });

  async function judge(
    name: string,
    queue: JsonObject,
    cric: JsonObject | null = entries,
  ): Promise<QueueVerdict> {
    const verdict = (await judgeWithCric(directory, { [name]: queue }, cric ?? undefined))[name];
    if (verdict === undefined) throw new Error(`there is no verdict on ${name}`);
    return verdict;
  }
  const configOf = ({ config, problems }: QueueVerdict): QueueConfig => {
    if (config === undefined) throw new Error(JSON.stringify(problems));
    return config;
  };
  const said = ({ problems }: QueueVerdict) => problems.map(({ severity, code }) => `${severity} ${code}`);

  it('has the sizes and the CEs that it was incomplete without', async () => {
    const queue = condor({ useCRICGridCE: true });
    const before = await judge('TEST_ARC', queue, null);
    expect(before.state).to.equal('incomplete');
    expect(new Set(said(before))).to.deep.equal(new Set(['error ce-list-missing', 'error size-not-said']));
    expect(before.problems.find(({ code }) => code === 'ce-list-missing')?.message).to.include(
      'panda_queues.json in cacher.data of the settings',
    );
    const verdict = await judge('TEST_ARC', queue);
    expect(verdict.state).to.equal('ready');
    // Its attributes of CRIC, which the template has no place for.
    expect(said(verdict)).to.deep.equal(['notice cric-value-differs']);
    expect(verdict.standing).to.deep.equal([]);
    expect(requirementsOf(configOf(verdict))).to.include({
      nCore: 1,
      minRamCount: 2500,
      maxDiskCount: 80_000,
      maxWalltime: 172_800,
    });
  });

  it('keeps what its file says itself, option by option', async () => {
    const own = { minRamCount: 1000, pilot_version: '4', nCore: -1, ceEndpoint: 'ce.site:9619' };
    const queue = condor({ useCRIC: true, ...own });
    const { worker, plugins, limits } = configOf(
      await judge(
        'AGLT2',
        { ...queue, maxNewWorkersPerCycle: 5 },
        { AGLT2: { ...all.AGLT2, harvester: 'thresher-test' } },
      ),
    );
    expect(worker).to.include({ minRamCount: 1000, maxDiskCount: 106_498 });
    expect(plugins.submitter?.config).to.include({ pilot_version: '4', panda_site: 'GreatLakesT2' });
    expect(limits).to.include({ maxWorkers: 10, maxNewWorkersPerCycle: 5 });
  });

  it('has the cores of the site where its file leaves them to the site', async () => {
    const entry = { corecount: 8, maxrss: 16_000, maxwdir: 80_000, maxtime: 3600 };
    const queue = condor({ nCore: -1, ceEndpoint: 'ce.site:9619' });
    expect(requirementsOf(configOf(await judge('Q', queue, { Q: entry }))).nCore).to.equal(8);
  });

  it('is closed by what CRIC says, with that as its reason', async () => {
    const queue = condor({
      useCRIC: true,
      minRamCount: 1,
      maxDiskCount: 1,
      maxWalltime: 1,
      ceEndpoint: 'ce',
    });
    const standing = async (name: string, own: JsonObject = {}) =>
      (await judge(name, { ...queue, queueStatus: 'online', ...own })).standing;
    expect(await standing('TEST_OFFLINE')).to.deep.equal([
      'CRIC says that the queue is offline: change it there, or set cricStatus of the queue to "online" for new workers all the same',
    ]);
    expect(await standing('TEST_OTHER_HARVESTER')).to.deep.equal([
      'CRIC gives the queue to another instance or pilot manager (`harvester`, `pilot_manager`): change it there, or set cricStatus of the queue to "online" for new workers all the same',
    ]);
    expect(await standing('BROKEROFF')).to.deep.equal([]);
    expect(await standing('TEST_OFFLINE', { cricStatus: 'online' })).to.deep.equal([]);
  });

  it('goes on with every value of CRIC of a wrong form left out, and named with its entry', async () => {
    const wrong = {
      corecount: '8',
      maxrss: -1,
      maxtime: [],
      maxwdir: {},
      status: 1,
      pilot_version: true,
      panda_site: 7,
      queues: 'ce',
      params: { maxWorkers: '50', pilot_url: 1, ce_fairshare_percent: 101, 'jdl.plusattr.A': '$(x)' },
    };
    const queue = condor({
      useCRIC: true,
      minRamCount: 1,
      maxDiskCount: 1,
      maxWalltime: 1,
      ceEndpoint: 'ce',
    });
    const verdict = await judge('Q', queue, { Q: wrong });
    expect(verdict.state).to.equal('ready');
    expect(new Set(said(verdict))).to.deep.equal(new Set(['warning cric-value-wrong']));
    const pointers = verdict.problems.map(({ pointer }) => pointer).sort();
    expect(pointers).to.deep.equal(
      [
        ...['corecount', 'maxrss', 'maxtime', 'maxwdir', 'status', 'pilot_version', 'panda_site'],
        ...['maxWorkers', 'pilot_url', 'ce_fairshare_percent', 'jdl.plusattr.A'].map(
          (key) => `params/${key}`,
        ),
      ]
        .map((path) => `/Q/${path}`)
        .sort(),
    );
    for (const { file } of verdict.problems) expect(file).to.match(/state\/cache\/panda_queues\.json$/);
  });

  it('sends its workers nowhere else while all CEs of CRIC are switched off', async () => {
    const entry = {
      maxrss: 1,
      maxwdir: 1,
      maxtime: 1,
      queues: [{ ce_endpoint: 'ce', ce_flavour: 'ARC-CE', ce_state: 'DISABLED' }],
    };
    const verdict = await judge('Q', condor({ useCRICGridCE: true, ceEndpoint: 'other' }), { Q: entry });
    expect(verdict.state).to.equal('incomplete');
    expect(verdict.problems.find(({ severity }) => severity === 'error')?.message).to.equal(
      'none of the ceList has ce_state ACTIVE, so nothing can be submitted (fetched from file:///panda_queues.json)',
    );
  });

  it('says that it asks for CRIC in vain: CRIC is not read, or does not know it', async () => {
    const sizes = { minRamCount: 1, maxDiskCount: 1, maxWalltime: 1, ceEndpoint: 'ce' };
    const queue = condor({ useAtlasAGIS: true, ...sizes });
    const unread = await judge('Q', queue, null);
    expect(
      unread.problems.map(({ severity, pointer, message }) => [severity, pointer, message]),
    ).to.deep.equal([
      [
        'notice',
        '/Q/submitter/useAtlasAGIS',
        "submitter.useAtlasAGIS has no effect, since CRIC is not read: CRIC's values come by panda_queues.json in cacher.data of the settings",
      ],
    ]);
    const unknown = await judge('Q', queue, { OTHER: {} });
    expect(unknown.problems.map(({ severity, message }) => [severity, message])).to.deep.equal([
      ['warning', 'CRIC has no queue Q, so useAtlasAGIS brings no options'],
    ]);
    const never = (await judgeWithCric(directory, { Q: queue }, 'never fetched')).Q;
    expect(never && said(never)).to.deep.equal(['error cache-missing']);
    expect(said(await judge('Q', condor({ useCRIC: false, ...sizes }), null))).to.deep.equal([]);
  });

  it('names the file of CRIC that was never fetched, and not the sizes and CEs that come with it', async () => {
    const queue = condor({ useCRICGridCE: true });
    const never = async (own: JsonObject = {}) => {
      const verdicts = await judgeWithCric(
        directory,
        { Q: condor({ useCRICGridCE: true, ...own }) },
        'never fetched',
      );
      return verdicts.Q && said(verdicts.Q);
    };
    expect(await never()).to.deep.equal(['error cache-missing']);
    expect(said(await judge('Q', queue, { OTHER: {} }))).to.include('error size-not-said');
    // A list of the queue's own stays as it is.
    const ceList = [{ ce_endpoint: 'ce:9619', ce_flavour: 'htcondor-ce', ce_state: 'DISABLED' }];
    expect(await never({ ceList })).to.deep.equal(['error cache-missing', 'error ce-list-missing']);
  });

  it('waits for the first file of CRIC also where it names the demand of the server itself, and no other demand', async () => {
    const sizes = { minRamCount: 1, maxDiskCount: 1, maxWalltime: 1, ceEndpoint: 'ce' };
    const statesOf = async (demand: unknown) => {
      const verdicts = await judgeWithCric(directory, { Q: condor(sizes, { demand }) }, 'never fetched');
      return (verdicts.Q && said(verdicts.Q))?.filter((one) => one.endsWith('cache-missing'));
    };
    const ofServer = { name: 'panda', activateWorkerFactor: 2 };
    expect(await statesOf('panda')).to.deep.equal(['error cache-missing']);
    expect(await statesOf(ofServer)).to.deep.equal(['error cache-missing']);
    expect(await statesOf('fill')).to.deep.equal([]);
    expect(await statesOf({ name: 'fill' })).to.deep.equal([]);
  });
});

describe('a difference from Harvester that a take-over meets', () => {
  let directory: string;
  beforeEach(() => {
    directory = temporaryDirectory();
    writeFileSync(join(directory, 'ups.sdf'), ups);
  });

  const entry = { corecount: 8, maxrss: 16_000, maxwdir: 80_000, maxtime: 3600 };
  const ucore = { ...entry, capability: 'ucore' };
  async function said(queue: JsonObject, cric: JsonObject = entry): Promise<string[]> {
    const verdict = (await judgeWithCric(directory, { Q: queue }, { Q: cric })).Q;
    expect(verdict?.state).to.equal('ready');
    return (verdict?.problems ?? []).map(
      ({ severity, code, pointer, message }) => `${severity} ${code} ${pointer} ${message}`,
    );
  }
  const ce = { ceEndpoint: 'ce.site:9619' };

  it('is named where attributes of CRIC get into jobs whose template has no place for them', async () => {
    const cric = { ...entry, params: { 'jdl.plusattr.MyProject': '"lhc"' } };
    const queue = condor({ useCRIC: true, ...ce });
    const [line, ...others] = await said(queue, cric);
    expect(others).to.deep.equal([]);
    expect(line).to.match(
      /^notice cric-value-differs \S+ each job gets MyProject, .* set customSubmitAttributes to \{\} in the queue/,
    );
    expect(await said(condor({ useCRIC: true, ...ce, customSubmitAttributes: {} }), cric)).to.deep.equal([]);
    writeFileSync(join(directory, 'ups.sdf'), `{customSubmitAttributes}\n${ups}`);
    expect(await said(queue, cric)).to.deep.equal([]);
  });

  it('is named where a worker without orders has a whole slot of a unified queue', async () => {
    const [line, ...others] = await said(condor(ce), ucore);
    expect(others).to.deep.equal([]);
    expect(line).to.match(/^notice cric-value-differs \S+ .* whole slot of 8 cores.* set runMode to "slave"/);
    expect(await said(condor(ce, { runMode: 'slave' }), ucore)).to.deep.equal([]);
    expect(await said(condor(ce), { ...ucore, corecount: 1 })).to.deep.equal([]);
    expect(await said(condor(ce), entry)).to.deep.equal([]);
  });

  it('is named where xcount of special_par is the slot of a unified queue', async () => {
    const queues = [{ ce_endpoint: 'ce', ce_flavour: 'arc-ce', ce_state: 'ACTIVE' }];
    const cric = { queues, special_par: '(xcount=4)' };
    const queue = condor({ useCRICGridCE: true }, { runMode: 'slave' });
    const [line, ...others] = await said(queue, { ...ucore, ...cric });
    expect(others).to.deep.equal([]);
    expect(line).to.match(
      /^notice cric-value-differs \S+special_par a slot of this unified queue has 4 cores by xcount/,
    );
    expect(await said(queue, { ...entry, ...cric })).to.deep.equal([]);
  });

  it('is named where no template has the submitMode, and where pilots of a pull queue wait for a job', async () => {
    const queue = condor({ ...ce, submitMode: 'PUSH' });
    const [idle] = await said(queue);
    expect(idle).to.match(
      /^notice option-without-effect \/Q\/submitter\/submitMode submitMode has no effect/,
    );
    writeFileSync(join(directory, 'ups.sdf'), `arguments = {submitMode}\n${ups}`);
    const [waits] = await said(queue);
    expect(waits).to.match(/^warning doubtful-value \/Q\/submitter\/submitMode .* set submitMode to "PULL"/);
    expect(await said(condor(ce))).to.deep.equal([]);
  });

  it('is none where noPilotsWhenNoActiveJobs stands beside a source that counts jobs', async () => {
    const option = { ...ce, noPilotsWhenNoActiveJobs: true };
    const verdicts = await judgeWithCric(directory, { Q: condor(option, { demand: 'panda' }) }, { Q: entry });
    expect(verdicts.Q?.draft?.worker.noPilotsWhenNoActiveJobs).to.equal(true);
    expect(verdicts.Q?.problems.map(({ code }) => code)).to.deep.equal(['panda-server-off']);
    const [line] = await said(condor(option, { demand: 'fill' }));
    expect(line).to.match(/^warning option-without-effect .* demand is fill, which counts no jobs/);
  });

  it('is named where a template of Kubernetes sets a directory of the pilot, or x509UserProxy stands beside proxySecretPath', async () => {
    const template = (env: readonly JsonObject[]) =>
      JSON.stringify({
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'pilot' },
        spec: {
          backoffLimit: 0,
          template: {
            spec: {
              restartPolicy: 'Never',
              containers: [{ name: 'pilot', image: 'i', command: ['p'], env }],
            },
          },
        },
      });
    const access = {
      'current-context': 'c',
      clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      users: [{ name: 'u', user: { token: 't' } }],
    };
    writeFileSync(join(directory, 'kubeconfig'), JSON.stringify(access));
    const module = 'thresher/kubernetes';
    const place = { module, k8s_config_file: 'kubeconfig' };
    const queue = (more: JsonObject) => ({
      mapType: 'NoJob',
      maxWorkers: 10,
      submitter: { name: 'K8sSubmitter', ...place, k8s_yaml_file: 'job.yaml', ...more },
      monitor: { name: 'K8sMonitor', ...place },
      sweeper: { name: 'K8sSweeper', ...place },
    });
    writeFileSync(join(directory, 'job.yaml'), template([{ name: 'TMPDIR', value: '/root' }]));
    const [line, ...others] = await said(queue({}));
    expect(others).to.deep.equal([]);
    expect(line).to.match(
      /^notice template-risky \/spec\/template\/spec\/containers\/0\/env\/0\/value TMPDIR of the pilot is \/root and not \/pilotdir, .* set k8s\.volumes\.pilot_dir_mount$/,
    );
    expect(await said(queue({ 'k8s.volumes.pilot_dir_mount': '/root' }))).to.deep.equal([]);
    writeFileSync(join(directory, 'job.yaml'), template([{ name: 'TMPDIR', value: '$TMPDIR' }]));
    expect(await said(queue({}))).to.deep.equal([]);
    const both = await said(queue({ proxySecretPath: '/proxy/x509', x509UserProxy: 'proxy' }));
    expect(both.join('\n')).to.match(
      /^notice option-without-effect \/Q\/submitter\/x509UserProxy .*remove one of them$/m,
    );
    expect((await said(queue({ proxySecretPath: '/proxy/x509' }))).join()).to.not.contain('x509UserProxy');
  });
});

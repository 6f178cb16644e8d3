import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from 'chai';
import { cricLayer } from '../../../src/config/cric/layer.ts';
import { isObject, type JsonObject } from '../../../src/util/json.ts';
import { cricEntries } from '../../support/cric-site.ts';

const backendOf = (prefix: string, submitter: JsonObject = {}): JsonObject => ({
  submitter: { name: `${prefix}Submitter`, module: 'm', ...submitter },
  monitor: { name: `${prefix}Monitor`, module: 'm' },
  sweeper: { name: `${prefix}Sweeper`, module: 'm' },
});
const kubernetes = (submitter: JsonObject = {}) => backendOf('K8s', submitter);
const htcondor = (submitter: JsonObject = { useCRICGridCE: true }) => backendOf('HTCondor', submitter);
const local = backendOf('Local');

const layerOf = (entry: JsonObject, values: JsonObject, harvesterId?: string) =>
  cricLayer(entry, {
    name: 'Q',
    values,
    file: '/cric.json',
    ...(harvesterId !== undefined && { harvesterId }),
  });
/** Without `wholeSlots`, which every entry has that is not unified. */
const valuesOf = (entry: JsonObject, values: JsonObject, harvesterId?: string): JsonObject => {
  const { submitter, ...rest } = layerOf(entry, values, harvesterId).values;
  if (!isObject(submitter)) return rest;
  const others = Object.entries(submitter).filter(([option]) => option !== 'wholeSlots');
  return others.length === 0 ? rest : { ...rest, submitter: Object.fromEntries(others) };
};
const submitterOf = (entry: JsonObject, values: JsonObject) => valuesOf(entry, values).submitter ?? {};
const saidOf = (entry: JsonObject, values: JsonObject) =>
  layerOf(entry, values).problems.map(
    ({ severity, pointer, message }) => `${severity} ${pointer}: ${message}`,
  );

describe('the size of a worker by CRIC', () => {
  const slot = { corecount: 8, maxrss: 2000, maxwdir: 10_000, maxtime: 86_400 };

  it('is that of a whole slot, on every backend', () => {
    const size = { nCore: 8, minRamCount: 2000, maxDiskCount: 10_000, maxWalltime: 86_400 };
    expect(valuesOf(slot, local)).to.deep.equal({ submitter: size });
    expect(submitterOf(slot, kubernetes())).to.deep.include(size);
    expect(valuesOf(slot, htcondor({}))).to.deep.equal({ submitter: size });
  });

  it('is multiplied by the cores where its attributes are those of one core', () => {
    for (const catchall of [
      ...['per_core_attr', 'foo=1,per_core_attr', 'per_core_attr=true, foo', 'per_core_attributes'],
    ])
      expect(submitterOf({ ...slot, catchall }, local)).to.deep.include({
        minRamCount: 16_000,
        maxDiskCount: 80_000,
        maxWalltime: 86_400,
      });
    for (const catchall of ['', 'no_per_core_attr', 'foo, per_core_attr', null, 7])
      expect(submitterOf({ ...slot, catchall }, local)).to.deep.include({ minRamCount: 2000 });
  });

  it('is not said where the entry does not say it, or says 0', () => {
    for (const nothing of [0, null, '', undefined])
      expect(valuesOf({ corecount: nothing, maxrss: nothing, maxtime: nothing }, local)).to.deep.equal({});
  });

  it('has its cores before those of the queue file, as in Harvester, and says so where that has others', () => {
    const said =
      'notice /corecount: a worker has 8 cores by CRIC, as in Harvester, and nCore of the queue file, 4, does not count: remove it there';
    for (const [nCore, ...why] of [[4, said], [8], [-1], [0], [null]] as const) {
      const queue = backendOf('K8s', { nCore });
      expect(layerOf(slot, queue).above).to.deep.equal({ submitter: { nCore: 8 } });
      expect(saidOf(slot, queue)).to.deep.equal(why);
    }
    for (const [entry, nCore] of [
      [slot, undefined],
      [{ corecount: 0 }, 4],
    ] as const)
      expect(layerOf(entry, backendOf('K8s', nCore === undefined ? {} : { nCore })).above).to.deep.equal({});
  });

  it('has the node of CRIC where the queue file leaves it to CRIC, and says so where the file has another', () => {
    const said =
      'notice /corecount: a worker has its cores by CRIC, where a slot has 8, as in Harvester; nCorePerNode of the queue file, 1, counts for the placeholders nCorePerNode and nNode alone: remove it there if a node has the cores of the slot';
    const node = (nCorePerNode: unknown) => htcondor({ useCRIC: true, nCorePerNode });
    for (const nothing of [0, -1, null]) {
      expect(layerOf(slot, node(nothing)).above).to.deep.equal({ submitter: { nCorePerNode: 8 } });
      expect(saidOf(slot, node(nothing))).to.deep.equal([]);
    }
    for (const [own, ...why] of [[1, said], [8], ['x']] as const) {
      expect(layerOf(slot, node(own)).above).to.deep.equal({});
      expect(saidOf(slot, node(own))).to.deep.equal(why);
    }
    expect(layerOf({}, node(0)).above).to.deep.equal({});
    expect(layerOf(slot, htcondor({ nCorePerNode: 0 })).above).to.deep.equal({});
    expect(saidOf(slot, htcondor({ nCorePerNode: 1 }))).to.deep.equal([]);
  });

  it('is shared by the workers of a unified queue', () => {
    const unified = { ...slot, capability: 'ucore' };
    expect(submitterOf(unified, kubernetes())).to.deep.include({ diskByCores: true });
    expect(submitterOf(unified, kubernetes())).to.not.have.any.keys('useMaxRam', 'unifiedQueue');
    expect(submitterOf(unified, htcondor())).to.deep.include({ unifiedQueue: true, nCorePerNode: 8 });
    expect(submitterOf(unified, htcondor())).to.not.have.property('diskByCores');
    expect(submitterOf({ ...unified, catchall: 'useMaxRam' }, local)).to.deep.include({ useMaxRam: true });
    expect(submitterOf({ ...slot, catchall: 'useMaxRam' }, local)).to.not.have.property('useMaxRam');
    const isWhole = (capability?: string | null) => {
      const { submitter } = layerOf(
        { ...slot, ...(capability !== undefined && { capability }) },
        local,
      ).values;
      return isObject(submitter) && submitter.wholeSlots;
    };
    expect(['ucore', 'mcore', 'score', null, undefined].map(isWhole)).to.deep.equal([
      ...[undefined, true, true, true, true],
    ]);
  });
});

describe('the status of a queue by CRIC', () => {
  it('is passed on as it is', () => {
    for (const status of ['online', 'offline', 'standby', 'maintenance', 'brokeroff', 'test'])
      expect(valuesOf({ status }, local)).to.deep.equal({ cricStatus: status });
    expect(valuesOf({ status: 'OFFLINE' }, local)).to.deep.equal({ cricStatus: 'offline' });
    expect(valuesOf({}, local)).to.deep.equal({});
  });

  it('is elsewhere for the queue of another instance or pilot manager', () => {
    const ours = { status: 'online', pilot_manager: 'Harvester', harvester: 'us' };
    const statusOf = (entry: JsonObject, id?: string) =>
      valuesOf({ ...ours, ...entry }, local, id).cricStatus;
    expect(statusOf({}, 'us')).to.equal('online');
    expect(statusOf({ harvester: 'them' }, 'us')).to.equal('elsewhere');
    expect(statusOf({ pilot_manager: 'APF' }, 'us')).to.equal('elsewhere');
    expect(statusOf({ harvester: null, pilot_manager: '' }, 'us')).to.equal('online');
    expect(statusOf({ harvester: 'them' })).to.equal('online');
  });

  it('is left out where it is no text', () => {
    expect(saidOf({ status: 7 }, local)).to.deep.equal([
      'warning /status: status is 7 in CRIC; it must be a text: it is left out',
    ]);
  });
});

describe('c30: what is requested of the cores and the memory of a worker by CRIC', () => {
  const params = (cpu: unknown, memory?: unknown) => ({
    params: {
      'k8s.resources.requests.cpu_scheduling_ratio': cpu,
      'k8s.resources.requests.memory_scheduling_ratio': memory,
    },
  });

  it('is 90 % of the cores where CRIC does not say it, as in Harvester', () => {
    for (const entry of [{}, params(null), params(''), params('80'), params(0)])
      expect(valuesOf(entry, kubernetes())).to.deep.equal({ submitter: { cpuAdjustRatio: 90 } });
    expect(valuesOf(params(50, 80), kubernetes())).to.deep.equal({
      submitter: { cpuAdjustRatio: 50, memoryAdjustRatio: 80 },
    });
    expect(valuesOf({}, htcondor({}))).to.deep.equal({});
    expect(saidOf({}, kubernetes())).to.deep.equal([]);
  });

  it('is named where the queue file has another one, which counts', () => {
    expect(saidOf({}, kubernetes({ cpuAdjustRatio: 100, memoryAdjustRatio: 90 }))).to.deep.equal([
      'notice /params/k8s.resources.requests.cpu_scheduling_ratio: Harvester requests 90 % of the cpu of a worker here; cpuAdjustRatio of the queue file is 100, and counts',
      'notice /params/k8s.resources.requests.memory_scheduling_ratio: Harvester requests 100 % of the memory of a worker here; memoryAdjustRatio of the queue file is 90, and counts',
    ]);
    expect(saidOf(params(80), kubernetes({ cpuAdjustRatio: 90 }))).to.have.length(1);
    expect(saidOf(params(80, 70), kubernetes({ cpuAdjustRatio: 80, memoryAdjustRatio: 70 }))).to.deep.equal(
      [],
    );
    expect(saidOf({}, kubernetes({ cpuAdjustRatio: 90, memoryAdjustRatio: 100 }))).to.deep.equal([]);
  });
});

describe('the namespace by CRIC', () => {
  const params = { 'k8s.namespace': 'second' };
  const sections = (values: JsonObject) =>
    Object.fromEntries(Object.entries(values).map(([key, section]) => [key, section]));
  const all = (name: string) => ({
    submitter: { cpuAdjustRatio: 90, 'k8s.namespace': name },
    monitor: { 'k8s.namespace': name },
    sweeper: { 'k8s.namespace': name },
  });

  it('is that of the first CE before that of the parameters, and of all three sections', () => {
    const entry = { params, queues: [{ ce_queue_name: 'first' }, { ce_queue_name: 'other' }] };
    expect(sections(valuesOf(entry, kubernetes()))).to.deep.equal(all('first'));
    expect(valuesOf({ params }, kubernetes())).to.deep.equal(all('second'));
    for (const queues of [[], null, [{}], [{ ce_queue_name: '' }], [7], {}])
      expect(valuesOf({ params, queues }, kubernetes())).to.deep.equal(all('second'));
    expect(valuesOf(entry, htcondor({}))).to.deep.equal({});
  });

  it('is left out where Kubernetes has no such names', () => {
    const entry = { params, queues: [{ ce_queue_name: 'Grid_Queue' }] };
    expect(valuesOf(entry, kubernetes())).to.deep.equal(all('second'));
    expect(saidOf(entry, kubernetes())).to.deep.equal([
      'warning /queues/0/ce_queue_name: queues.0.ce_queue_name is "Grid_Queue" in CRIC; it must be the name of a namespace: it is left out',
    ]);
  });

  it('does not count before that of the queue file, which Harvester does not read', () => {
    expect(saidOf({ params }, kubernetes({ k8s_namespace: 'mine' }))).to.deep.equal([
      "notice /params/k8s.namespace: CRIC's namespace is second, which Harvester takes; k8s_namespace of the queue file is mine, and counts",
    ]);
    for (const k8s_namespace of ['second', ''])
      expect(saidOf({ params }, kubernetes({ k8s_namespace }))).to.deep.equal([]);
  });
});

describe('a queue of HTCondor', () => {
  const entry = {
    pilot_version: 3,
    python_version: '3',
    panda_site: 'SITE',
    resource_type: 'gpu',
    params: { pilot_url: 'https://host/~user/pilot.tar.gz', pilot_args: '-x', ce_fairshare_percent: 30 },
  };

  it('takes the options of the pilot from CRIC where it asks for CRIC, by any of its names', () => {
    const pilot = {
      pilot_version: '3',
      python_version: '3',
      panda_site: 'SITE',
      requestGpus: 1,
      pilot_url: 'https://host/~user/pilot.tar.gz',
      pilot_args: '-x',
      ce_fairshare_percent: 30,
    };
    for (const name of ['useCRIC', 'useAtlasCRIC', 'useAtlasAGIS'])
      expect(submitterOf(entry, htcondor({ [name]: true }))).to.deep.equal(pilot);
    for (const name of ['useCRICGridCE', 'useAtlasGridCE'])
      expect(submitterOf(entry, htcondor({ [name]: true }))).to.deep.equal({ ...pilot, ceList: [] });
    expect(submitterOf(entry, htcondor({}))).to.deep.equal({});
    expect(submitterOf(entry, htcondor({ useCRIC: false, useAtlasCRIC: true }))).to.deep.equal({});
    expect(submitterOf(entry, htcondor({ useCRICGridCE: false, useAtlasGridCE: true }))).to.deep.equal({});
  });

  it('takes attributes of its jobs, as expressions, comparisons among them', () => {
    const params = {
      'jdl.plusattr.MyProject': 'x',
      'jdl.plusattr.Text': '"a b"',
      'jdl.plusattr.Rule': 'Memory >= 2000 && (Cpus < 8 || Cpus != 3)',
      'jdl.plusattr.Number': 7,
      'jdl.plusattr.Flag': true,
      'jdl.plusattr.Empty': '',
      'jdl.other': 'y',
    };
    expect(submitterOf({ params }, htcondor({ useCRIC: true }))).to.deep.equal({
      customSubmitAttributes: {
        MyProject: 'x',
        Text: '"a b"',
        Rule: 'Memory >= 2000 && (Cpus < 8 || Cpus != 3)',
        Number: '7',
        Flag: 'true',
      },
    });
  });

  it('hole 8: takes the first 200 attributes of an entry, and says so', () => {
    const named = (count: number) => ({
      params: Object.fromEntries(Array.from({ length: count }, (_, at) => [`jdl.plusattr.x${at}`, 'y'])),
    });
    const taken = submitterOf(named(9000), htcondor({ useCRIC: true }));
    const { customSubmitAttributes = {} } = taken as { customSubmitAttributes?: object };
    expect(Object.keys(customSubmitAttributes)).to.have.length(200);
    expect(saidOf(named(200), htcondor({ useCRIC: true }))).to.deep.equal([]);
    expect(saidOf(named(201), htcondor({ useCRIC: true }))).to.deep.equal([
      'warning /params: the entry has more than 200 jdl.plusattr.ATTRIBUTE in CRIC: the first 200 count, and the others are left out',
    ]);
  });

  it('takes no attribute that is more than a name and an expression', () => {
    const wrong = {
      'jdl.plusattr.': 'x',
      'jdl.plusattr.9lives': 'x',
      'jdl.plusattr.a-b': 'x',
      'jdl.plusattr.a b': 'x',
      'jdl.plusattr.Line': 'x\nqueue 100',
      'jdl.plusattr.Macro': '$(HOME)',
      'jdl.plusattr.List': ['x'],
    };
    expect(submitterOf({ params: wrong }, htcondor({ useCRIC: true }))).to.deep.equal({});
    const pointers = layerOf({ params: wrong }, htcondor({ useCRIC: true })).problems.map(
      ({ pointer }) => pointer,
    );
    expect(pointers).to.deep.equal(Object.keys(wrong).map((key) => `/params/${key}`));
  });
});

const noCe =
  'warning /queues: CRIC names no CE of the queue that HTCondor can speak to (queues[] with ce_endpoint and a ce_flavour of htcondor-ce, arc-ce or cream-ce)';

describe('the CEs of a queue by CRIC', () => {
  const listOf = (queues: unknown, more: JsonObject = {}) => {
    const { ceList } = submitterOf({ queues, ...more }, htcondor()) as { ceList?: unknown };
    return ceList;
  };

  it('hole 8: are told of by the first mistakes and the number of the others, however many there are', () => {
    const { problems } = layerOf({ queues: Array(300_000).fill(1) }, htcondor());
    expect(problems).to.have.length.below(25);
    expect(problems.at(-1)?.message).to.match(/^29\d{4} further remarks on values of the entry in CRIC/);
  });

  it('are those with an endpoint and a flavour that HTCondor speaks, in any case of letters', () => {
    const queues = [
      {
        ce_endpoint: 'a:9619',
        ce_flavour: 'HTCONDOR-CE',
        ce_state: 'active',
        ce_queue_name: 'q',
        ce_version: 5,
      },
      {
        ce_endpoint: 'b',
        ce_flavour: 'ARC-CE',
        ce_state: 'ACTIVE',
        ce_jobmanager: 'slurm',
        ce_hostname: 'x',
      },
      { ce_endpoint: 'c', ce_flavour: 'cream-ce', ce_state: 'DISABLED' },
      { ce_endpoint: 'd', ce_flavour: 'arc-ce' },
      { ce_endpoint: 'https://k8s', ce_flavour: 'KUBERNETES', ce_state: 'ACTIVE' },
      { ce_endpoint: '', ce_flavour: 'arc-ce', ce_state: 'ACTIVE' },
      { ce_flavour: 'arc-ce', ce_state: 'ACTIVE' },
    ];
    expect(listOf(queues)).to.deep.equal([
      {
        ce_endpoint: 'a:9619',
        ce_flavour: 'htcondor-ce',
        ce_state: 'ACTIVE',
        ce_queue_name: 'q',
        ce_version: '5',
      },
      { ce_endpoint: 'b', ce_flavour: 'arc-ce', ce_state: 'ACTIVE', ce_jobmanager: 'slurm' },
      { ce_endpoint: 'c', ce_flavour: 'cream-ce', ce_state: 'DISABLED' },
      { ce_endpoint: 'd', ce_flavour: 'arc-ce', ce_state: 'UNKNOWN' },
    ]);
  });

  it('have no more of anything than a machine has', () => {
    const most = { corecount: 4096, maxrss: 2 ** 26, maxwdir: 976_562_500 };
    expect(submitterOf(most, htcondor({ useCRIC: true }))).to.deep.include({
      nCore: 4096,
      nCorePerNode: 4096,
      minRamCount: 2 ** 26,
      maxDiskCount: 976_562_500,
    });
    for (const much of [2 ** 31, 3e9, Number.MAX_SAFE_INTEGER])
      for (const [field, option, form] of [
        ['corecount', 'nCore', 'an integer from 0 to 4096'],
        ['maxrss', 'minRamCount', 'a number from 0 to 67108864'],
        ['maxwdir', 'maxDiskCount', 'a number from 0 to 976562500'],
      ] as const) {
        const queue = htcondor({ useCRIC: true });
        expect(submitterOf({ [field]: much }, queue)).to.not.have.any.keys(option, 'nCorePerNode');
        expect(saidOf({ [field]: much }, queue)).to.deep.equal([
          `warning /${field}: ${field} is ${much} in CRIC; it must be ${form}: it is left out`,
        ]);
      }
    const perCore = { corecount: 4096, maxrss: 100_000, catchall: 'per_core_attr' };
    expect(submitterOf(perCore, htcondor({ useCRIC: true }))).to.not.have.property('minRamCount');
    const queues = [{ ce_endpoint: 'a', ce_flavour: 'arc-ce', ce_state: 'ACTIVE' }];
    for (const much of [4097, 999_999_999])
      expect(submitterOf({ queues, special_par: `(xcount=${much})` }, htcondor())).to.not.have.property(
        'nCore',
      );
  });

  it('have the queue, cores and wall time of special_par', () => {
    const queues = [{ ce_endpoint: 'a', ce_flavour: 'arc-ce', ce_state: 'ACTIVE', ce_queue_name: 'q' }];
    const special_par = '(queue=long)(xcount=4)(maxWallTime=3600)(queue=other)';
    const entry = { queues, special_par, corecount: 8, maxtime: 7200 };
    expect(submitterOf(entry, htcondor())).to.deep.include({
      ceList: [{ ce_endpoint: 'a', ce_flavour: 'arc-ce', ce_state: 'ACTIVE', ce_queue_name: 'long' }],
      nCore: 4,
      maxWalltime: 3600,
    });
    expect(submitterOf(entry, htcondor({ useCRIC: true }))).to.deep.include({ nCore: 8, maxWalltime: 7200 });
    expect(saidOf({ queues, special_par: '(xcount=many)' }, htcondor())).to.deep.equal([
      'warning /special_par: special_par has "many" for nCore in CRIC; it must be an integer from 1 to 4096: it is left out',
    ]);
  });

  it('are none, or fewer, where the entry has the wrong form', () => {
    expect(listOf({ a: 1 })).to.deep.equal([]);
    expect(listOf([7, { ce_endpoint: 7, ce_flavour: 'arc-ce' }])).to.deep.equal([]);
    expect(saidOf({ queues: { a: 1 } }, htcondor())).to.deep.equal([
      'warning /queues: queues is an object in CRIC; it must be a list: it is left out',
      noCe,
    ]);
    expect(saidOf({ queues: [7, { ce_endpoint: 7 }] }, htcondor())).to.deep.equal([
      'warning /queues/0: queues.0 is 7 in CRIC; it must be an object: it is left out',
      'warning /queues/1/ce_endpoint: queues.1.ce_endpoint is 7 in CRIC; it must be "HOST" or "HOST:PORT": it is left out',
      noCe,
    ]);
  });
});

describe('a layer of CRIC', () => {
  it('has no options for a section that the queue lacks', () => {
    const entry = { corecount: 8, params: { 'k8s.namespace': 'n', maxWorkers: 5 } };
    const { submitter } = kubernetes();
    expect(valuesOf(entry, { submitter })).to.have.all.keys('maxWorkers', 'submitter');
    expect(valuesOf(entry, {})).to.deep.equal({ maxWorkers: 5 });
  });

  it('says that its parameters are no object, and goes on', () => {
    const entry = { corecount: 8, params: ['maxWorkers'] };
    expect(valuesOf(entry, local)).to.deep.equal({ submitter: { nCore: 8 } });
    expect(saidOf(entry, local)).to.deep.equal([
      'warning /params: params is a list in CRIC; it must be an object: it is left out',
    ]);
  });

  it('leaves out the limits of jobs, and fields that Harvester does not read', () => {
    const entry = {
      timefloor: 60,
      minrss: 1,
      meanrss: 2,
      params: { nQueueLimitJob: 5, unified_dispatch: true },
    };
    expect(layerOf(entry, htcondor({ useCRIC: true }))).to.deep.equal({
      values: { submitter: { wholeSlots: true } },
      above: {},
      problems: [],
    });
  });
});

describe('the queues of a file of CRIC', () => {
  const file = resolve(import.meta.dirname, '../../fixtures/cric/pandaqueues.json');
  const entries = cricEntries(JSON.parse(readFileSync(file, 'utf8')) as JsonObject);
  const layerOfEntry = (name: string, values: JsonObject, harvesterId = 'thresher-test') => {
    const entry = entries.get(name);
    if (entry === undefined) throw new Error(`the file has no ${name}`);
    return cricLayer(entry, { name, values, file, harvesterId });
  };

  it('are all read, and none of them is wrong', () => {
    const names = [...entries.keys()];
    expect(names).to.have.length(7);
    const said = names.flatMap((name) =>
      [local, kubernetes(), htcondor({ useCRIC: true })].flatMap(
        (values) => layerOfEntry(name, values).problems,
      ),
    );
    expect(said).to.deep.equal([]);
    for (const name of ['AGLT2', 'TEST_ARC'])
      expect(layerOfEntry(name, htcondor()).problems).to.deep.equal([]);
    expect(
      layerOfEntry('TEST_K8S', htcondor()).problems.map(({ code, pointer }) => [code, pointer]),
    ).to.deep.equal([['cric-value-wrong', '/queues']]);
  });

  it('become options: a production site with one CE', () => {
    expect(layerOfEntry('AGLT2', htcondor(), 'CERN_central_A').values).to.deep.equal({
      maxNewWorkersPerCycle: 300,
      cricStatus: 'online',
      submitter: {
        nCore: 8,
        nCorePerNode: 8,
        minRamCount: 48_000,
        maxDiskCount: 106_498,
        maxWalltime: 258_000,
        pilot_version: '3.12.4.1',
        python_version: '3',
        panda_site: 'GreatLakesT2',
        unifiedQueue: true,
        ceList: [
          {
            ce_endpoint: 'gate01.aglt2.org:9619',
            ce_flavour: 'htcondor-ce',
            ce_state: 'ACTIVE',
            ce_queue_name: 'default',
            ce_jobmanager: 'condor',
            ce_version: '5',
          },
        ],
      },
    });
  });

  it('become options: a cluster of Kubernetes', () => {
    expect(layerOfEntry('TEST_K8S', kubernetes()).values).to.deep.equal({
      maxWorkers: 50,
      nQueueLimitWorker: 20,
      cricStatus: 'online',
      submitter: {
        nCore: 8,
        minRamCount: 16_000,
        maxDiskCount: 80_000,
        maxWalltime: 172_800,
        pilot_version: 'current',
        python_version: '3',
        diskByCores: true,
        cpuAdjustRatio: 90,
        'k8s.resources.limits.use_memory_limit': true,
        'k8s.resources.limits.memory_limit_safety_factor': 150,
        'k8s.resources.limits.memory_limit_min_offset': 200,
        'k8s.scheduler.priorityClassName.score': 'low',
        'k8s.annotations.safe_to_evict': false,
        'k8s.namespace': 'pilots',
      },
      monitor: { 'k8s.namespace': 'pilots' },
      sweeper: { 'k8s.namespace': 'pilots' },
    });
  });

  it('become options: ARC CEs, with the attributes of one core', () => {
    const { values } = layerOfEntry('TEST_ARC', htcondor());
    expect(values.cricStatus).to.equal('online');
    expect(values.submitter).to.deep.equal({
      wholeSlots: true,
      nCore: 1,
      nCorePerNode: 1,
      minRamCount: 2500,
      maxDiskCount: 80_000,
      maxWalltime: 172_800,
      pilot_version: 'current',
      python_version: '3',
      panda_site: 'TEST',
      ce_fairshare_percent: 30,
      customSubmitAttributes: { MyProject: 'x' },
      ceList: [
        {
          ce_endpoint: 'https://arc1.example.org',
          ce_flavour: 'arc-ce',
          ce_state: 'ACTIVE',
          ce_queue_name: 'grid',
          ce_jobmanager: 'slurm',
          ce_version: '6',
        },
        {
          ce_endpoint: 'arc2.example.org:2811',
          ce_flavour: 'arc-ce',
          ce_state: 'ACTIVE',
          ce_queue_name: 'grid',
        },
        {
          ce_endpoint: 'arc3.example.org:443',
          ce_flavour: 'arc-ce',
          ce_state: 'DISABLED',
          ce_queue_name: 'grid',
        },
      ],
    });
  });

  it('are closed, or open, as CRIC says', () => {
    const statusOf = (name: string) => layerOfEntry(name, local).values.cricStatus;
    expect(statusOf('TEST_TEMPLATE')).to.equal('brokeroff');
    expect(statusOf('TEST_OTHER_HARVESTER')).to.equal('elsewhere');
    expect(statusOf('TEST_OFFLINE')).to.equal('offline');
    expect(layerOfEntry('MINIMAL', local).values).to.deep.equal({
      cricStatus: 'offline',
      submitter: { nCore: 1, minRamCount: 2000, wholeSlots: true },
    });
  });
});

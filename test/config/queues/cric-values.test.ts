import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type QueueVerdict, readQueueFile } from '../../../src/config/queues/queues.ts';
import { loadPlugins } from '../../../src/daemon/plugins.ts';
import { whyNot } from '../../../src/daemon/reports/queue-reports.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { files } from '../../support/operator-files.ts';

type Json = Record<string, unknown>;

const ups = [
  'executable = /bin/true',
  'universe = grid',
  'grid_resource = arc {ceEndpoint}',
  '+maxMemory = {requestRam}',
  '+memory = {requestRamPerCore}',
  '+disk = {requestDisk}',
  '+wall = {requestWalltimeMinute}',
  'queue 1',
].join('\n');
const plain = 'executable = /bin/true\nuniverse = vanilla\n';
const job = (value: string) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  spec: {
    template: {
      spec: {
        restartPolicy: 'Never',
        containers: [{ name: 'pilot', image: 'pilot', command: ['pilot'], env: [{ name: 'RAM', value }] }],
      },
    },
  },
});

/** A directory with the files that the queues below name. */
function site(): string {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'ces'));
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: { token: 't' } }],
  };
  const files = {
    'ups.sdf': ups,
    'plain.sdf': plain,
    'plain.yaml': 'executable: /bin/true\n',
    'ces/htcondor-ce.sdf': plain,
    kubeconfig: JSON.stringify(kubeconfig),
    'job.json': JSON.stringify(job('${minRamCount}')),
    'local.yaml': 'command: /bin/echo\nargs: ["${maxWalltime}"]\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

const plugins = (module: string, prefix: string) => ({
  monitor: { name: `${prefix}Monitor`, module },
  sweeper: { name: `${prefix}Sweeper`, module },
});
const base = { mapType: 'NoJob', maxWorkers: 1 };
const condor = (submitter: Json, own: Json = {}): Json => ({
  ...base,
  ...plugins('thresher/htcondor', 'HTCondor'),
  ...own,
  submitter: { name: 'HTCondorSubmitter', module: 'thresher/htcondor', ...submitter },
});
const kubernetes = (submitter: Json): Json => ({
  ...base,
  ...plugins('thresher/kubernetes', 'K8s'),
  common: { k8s_config_file: 'kubeconfig', k8s_yaml_file: 'job.json' },
  submitter: { name: 'K8sSubmitter', module: 'thresher/kubernetes', ...submitter },
});
const local = (submitter: Json): Json => ({
  ...base,
  ...plugins('thresher/local', 'Local'),
  submitter: { name: 'LocalSubmitter', module: 'thresher/local', templateFile: 'local.yaml', ...submitter },
});

async function judge(queue: Json): Promise<QueueVerdict> {
  const file = join(site(), 'queues.json');
  writeFileSync(file, JSON.stringify({ Q: queue }));
  const options = { stateDir: '/state', files, defaultDemand: 'fill', queueList: undefined } as const;
  const [verdict] = (await readQueueFile(file, await loadPlugins([], '/', files), options)).verdicts;
  if (verdict === undefined) throw new Error('there is no verdict');
  return verdict;
}

/** Of the problems those of these codes: `severity option`. */
const said = ({ problems }: QueueVerdict, code: RegExp) =>
  problems
    .filter((problem) => code.test(problem.code))
    .map(({ severity, pointer }) => `${severity} ${pointer.replace(/^.*\//, '')}`);
const ofSizes = (verdict: QueueVerdict) => said(verdict, /^size-not-said$/);
const ofCes = (verdict: QueueVerdict) => said(verdict, /^ce-/);

const endpoint = { ceEndpoint: 'ce.site:9619' };
const sizes = { minRamCount: 2000, maxDiskCount: 20_000, maxWalltime: 3600 };
const asking = { templateFile: 'ups.sdf', ...endpoint };
const all = ['minRamCount', 'maxDiskCount', 'maxWalltime'];

describe('sizes that Harvester takes from CRIC', () => {
  it('make a pull queue on HTCondor incomplete, where its template asks for them and it says none', async () => {
    const verdict = await judge(condor(asking));
    expect(verdict.state).to.equal('incomplete');
    expect(ofSizes(verdict)).to.deep.equal(all.map((name) => `error ${name}`));
    expect(verdict.problems[0]?.message).to.match(
      /ups\.sdf asks for requestRam, requestRamPerCore, and the queue does not say the memory of a worker: set minRamCount in MB/,
    );
    expect(whyNot(verdict)).to.equal(
      'to be set in the queue file or in CRIC: minRamCount, maxDiskCount, maxWalltime',
    );
  });

  it('are said where the queue sets them, and the queue is ready', async () => {
    const verdict = await judge(condor({ ...asking, ...sizes }));
    expect(verdict.state).to.equal('ready');
    expect(ofSizes(verdict)).to.deep.equal([]);
  });

  it('a size of 0 counts as not set', async () => {
    expect(ofSizes(await judge(condor({ ...asking, ...sizes, maxDiskCount: 0 })))).to.deep.equal([
      'error maxDiskCount',
    ]);
  });

  it('are a warning for a push queue, whose jobs say them', async () => {
    const verdict = await judge(condor(asking, { mapType: 'OneToOne' }));
    expect(verdict.state).to.equal('ready');
    expect(ofSizes(verdict)).to.deep.equal(all.map((name) => `warning ${name}`));
  });

  it('are not asked for by a template that names none', async () => {
    for (const templateFile of ['plain.sdf', 'plain.yaml'])
      expect(ofSizes(await judge(condor({ templateFile })))).to.deep.equal([]);
  });

  it('are a warning on the other backends, where a template names them', async () => {
    for (const [queue, name] of [
      [kubernetes, 'minRamCount'],
      [local, 'maxWalltime'],
    ] as const) {
      const verdict = await judge(queue({}));
      expect(verdict.state).to.equal('ready');
      expect(ofSizes(verdict)).to.deep.equal([`warning ${name}`]);
      expect(ofSizes(await judge(queue(sizes)))).to.deep.equal([]);
    }
  });

  it('are not said by walltimeLimit, which the worker maker of Harvester does not read', async () => {
    const said = { ...asking, minRamCount: 2000, maxDiskCount: 1 };
    const verdict = await judge(condor(said, { walltimeLimit: 7200 }));
    expect(ofSizes(verdict)).to.deep.equal(['error maxWalltime']);
  });
});

describe('CEs that Harvester takes from CRIC', () => {
  const template = { templateFile: 'plain.sdf' };
  const list = { ceList: [{ ce_endpoint: 'ce.site', ce_flavour: 'htcondor-ce' }] };

  for (const [what, submitter, state, problems] of [
    ['useCRICGridCE alone', { ...template, useCRICGridCE: true }, 'incomplete', ['error ceList']],
    ['useAtlasGridCE alone', { ...template, useAtlasGridCE: true }, 'incomplete', ['error ceList']],
    ['useCRICGridCE and a ceList', { ...template, useCRICGridCE: true, ...list }, 'ready', []],
    [
      'useCRICGridCE and ceEndpoint',
      { ...template, useCRICGridCE: true, ...endpoint },
      ...(['ready', ['warning useCRICGridCE']] as const),
    ],
    [
      'useCRICGridCE and ceHostname',
      { ...template, useCRICGridCE: true, ceHostname: 'ce.site' },
      ...(['ready', ['warning useCRICGridCE']] as const),
    ],
    ['useCRICGridCE switched off', { ...template, useCRICGridCE: false, useAtlasGridCE: true }, 'ready', []],
    ['CEtemplateDir alone', { CEtemplateDir: 'ces' }, 'incomplete', ['error ceList']],
    [
      'CEtemplateDir and useCRICGridCE',
      { CEtemplateDir: 'ces', useCRICGridCE: true },
      ...(['incomplete', ['error ceList']] as const),
    ],
    [
      'CEtemplateDir and ceEndpoint, whose kind is not known',
      { CEtemplateDir: 'ces', ...endpoint },
      ...(['incomplete', ['error ceList']] as const),
    ],
    ['CEtemplateDir and a ceList', { CEtemplateDir: 'ces', ...list }, 'ready', []],
    ['ceEndpoint alone', { ...template, ...endpoint }, 'ready', []],
  ] as const) {
    it(`a queue with ${what} is ${state}${problems.length > 0 ? `, ${problems.join(', ')}` : ''}`, async () => {
      const verdict = await judge(condor(submitter));
      expect(ofCes(verdict)).to.deep.equal(problems);
      expect(verdict.state).to.equal(state);
    });
  }

  it('are asked for by the name of the option that lists them', async () => {
    const verdict = await judge(condor({ CEtemplateDir: 'ces' }));
    expect(verdict.problems.map(({ message }) => message)).to.deep.equal([
      'CEtemplateDir has a template for each kind of CE, and the queue lists no CEs: list them in ceList, each with ce_endpoint and ce_flavour; ' +
        "CRIC's values come by panda_queues.json in cacher.data of the settings",
    ]);
    expect(whyNot(verdict)).to.equal('to be set in the queue file or in CRIC: ceList');
  });
});

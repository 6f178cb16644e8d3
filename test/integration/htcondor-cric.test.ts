import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { partOfSlot } from '../../src/agents/submission/entries.ts';
import { requirementsOf } from '../../src/agents/submission/worker-maker.ts';
import type { QueueConfig } from '../../src/config/queues/queues.ts';
import { cesOf } from '../../src/plugins/htcondor/place/ce-list.ts';
import type { HTCondorSubmitterConfig } from '../../src/plugins/htcondor/schema.ts';
import { describeBatch } from '../../src/plugins/htcondor/template/describe.ts';
import { logSubdirOf } from '../../src/plugins/htcondor/template/placeholders.ts';
import { loadTemplate } from '../../src/plugins/htcondor/template/template.ts';
import { shapeOf } from '../../src/sources/panda/shape.ts';
import type { JsonObject } from '../../src/util/json.ts';
import { judgeWithCric } from '../support/cric-site.ts';
import { batchOptions } from '../support/htcondor-batch.ts';
import { condorPool } from '../support/htcondor.ts';
import { files } from '../support/operator-files.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const fixtures = resolve(import.meta.dirname, '../fixtures/cric');
const read = (name: string): unknown => JSON.parse(readFileSync(join(fixtures, name), 'utf8'));
const entries = read('pandaqueues.json') as Readonly<Record<string, JsonObject>>;
const types = read('resource_types.json') as Parameters<typeof shapeOf>[1];

/** As sites write them, with Harvester's placeholders. */
const templates = {
  arc: [
    'executable = {executableFile}',
    'universe = grid',
    'grid_resource = arc {ceEndpoint}',
    'arc_rte = ENV/PROXY',
    'arc_resources = <QueueName>{ceQueueName}</QueueName>',
    '+site = "{cricPandaSite}"',
    '{customSubmitAttributes}',
    'queue 1',
  ].join('\n'),
  condor: [
    'executable = {executableFile}',
    'arguments = "-s {computingSite} {pilotResourceTypeOption} --pilotversion {pilotVersion} {pilotPythonOption} {pilotArgs}"',
    'universe = grid',
    'grid_resource = condor {ceHostname} {ceEndpoint}',
    '+remote_queue = "{ceQueueName}"',
    '+cores = {nCoreTotal}',
    '+coresPerNode = {nCorePerNode}',
    '+memory = {requestRam}',
    '+disk = {requestDisk}',
    '+wall = {requestWalltime}',
    '+gpus = {requestGpus}',
    '{customSubmitAttributes}',
    'queue 1',
  ].join('\n'),
};

describe('a queue of HTCondor with the options of CRIC', () => {
  let tool: string;
  let directory: string;

  before(async () => {
    tool = join((await condorPool()).programs, 'condor_submit');
  });
  beforeEach(() => {
    directory = temporaryDirectory();
    mkdirSync(join(directory, 'ces'));
    writeFileSync(join(directory, 'ces/arc-ce.sdf'), templates.arc);
    writeFileSync(join(directory, 'ces/htcondor-ce.sdf'), templates.condor);
    writeFileSync(join(directory, 'wrapper.sh'), '#!/bin/sh\n');
    chmodSync(join(directory, 'wrapper.sh'), 0o755);
    const config = `LOG = ${directory}\nSPOOL = ${directory}\nEXECUTE = ${directory}\n`;
    writeFileSync(join(directory, 'condor_config'), config);
  });

  /** The configuration by a queue file that leaves everything to CRIC. */
  async function configured(name: string, changes: JsonObject = {}): Promise<QueueConfig> {
    const queue = {
      mapType: 'NoJob',
      maxWorkers: 10,
      submitter: {
        name: 'HTCondorSubmitter',
        module: 'thresher/htcondor',
        useCRICGridCE: true,
        CEtemplateDir: 'ces',
        executableFile: 'wrapper.sh',
        logDir: directory,
      },
      monitor: { name: 'HTCondorMonitor', module: 'thresher/htcondor' },
      sweeper: { name: 'HTCondorSweeper', module: 'thresher/htcondor' },
    };
    const entry = { ...entries[name], harvester: 'thresher-test', ...changes };
    const verdict = (await judgeWithCric(directory, { [name]: queue }, { [name]: entry }))[name];
    if (verdict?.config === undefined) throw new Error(JSON.stringify(verdict?.problems));
    // A worker has the whole slot, where Harvester's self queue of ucore has one core.
    expect(verdict.problems.filter(({ pointer }) => pointer !== `/${name}/runMode`)).to.deep.equal([]);
    return verdict.config;
  }

  const submitterOf = ({ plugins }: QueueConfig) =>
    plugins.submitter?.config as unknown as HTCondorSubmitterConfig;

  /** The ad of a worker of this resource type at this CE, as the real tool makes it. */
  async function adOf(config: QueueConfig, endpoint: string, type: string): Promise<Record<string, string>> {
    const written = submitterOf(config);
    const submitter = { ...written, executableFile: join(directory, 'wrapper.sh') };
    const ce = cesOf(submitter).ces.find((one) => one.endpoint === endpoint);
    if (ce === undefined) throw new Error(`there is no CE ${endpoint}`);
    const loaded = await loadTemplate(files, join(directory, `ces/${ce.flavour}.sdf`), submitter);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const slot = requirementsOf(config);
    const shape = shapeOf(type, types, { coreCount: slot.nCore, maxRss: slot.minRamCount });
    const requirements = partOfSlot({ ...slot, ...shape }, slot, config.worker);
    const options = batchOptions(directory, { config: submitter, ce });
    mkdirSync(join(directory, logSubdirOf(options.now)), { recursive: true });
    const worker = workerOf(7, { queue: config.name, requirements });
    const { description, rejected } = describeBatch(loaded.template, [worker], options);
    if (rejected.size > 0) throw new Error(JSON.stringify([...rejected]));
    writeFileSync(options.sdfPath, description);
    const output = join(directory, 'ads');
    const done = spawnSync(tool, ['-dry-run', output, options.sdfPath], {
      encoding: 'utf8',
      timeout: 90_000,
      killSignal: 'SIGKILL',
      cwd: directory,
      env: { ...process.env, CONDOR_CONFIG: join(directory, 'condor_config') },
    });
    if (done.status !== 0) throw new Error(`${done.stderr}\n${description}`);
    const lines = readFileSync(output, 'utf8').matchAll(/^([\w.]+)=(.*)$/gm);
    return Object.fromEntries([...lines].map(([, key = '', value = '']) => [key, value]));
  }

  it('goes to the active ARC CEs, by REST, with their queue and the attributes of CRIC', async () => {
    const params = {
      ce_fairshare_percent: 30,
      'jdl.plusattr.MyProject': '"lhc"',
      'jdl.plusattr.Rule': 'TARGET.Memory >= 2000 && TARGET.Cpus < 64',
      'jdl.plusattr.Number': 7,
      'jdl.plusattr.Flag': true,
    };
    const config = await configured('TEST_ARC', { params });
    const submitter = submitterOf(config);
    expect(submitter.ce_fairshare_percent).to.equal(30);
    expect(cesOf(submitter).ces.map(({ endpoint, hostname }) => [endpoint, hostname])).to.deep.equal([
      ['arc1.example.org:443', 'arc1.example.org'],
      ['arc2.example.org:443', 'arc2.example.org'],
    ]);
    const ad = await adOf(config, 'arc2.example.org:443', 'SCORE_HIMEM');
    expect(ad.GridResource).to.equal('"arc arc2.example.org:443"');
    expect(ad.ArcResources).to.equal('"<QueueName>grid</QueueName>"');
    expect(ad).to.include({ MyProject: '"lhc"', Number: '7', Flag: 'true', site: '"TEST"' });
    expect(ad.Rule).to.match(/^TARGET\.Memory >= 2000 && TARGET\.Cpus < 64$/);
  });

  it('goes to an HTCondor-CE with the shape of its resource type, and the pilot of CRIC', async () => {
    const params = { pilot_args: '--verbose', unified_dispatch: true };
    const config = await configured('AGLT2', { params, resource_type: 'gpu' });
    const endpoint = 'gate01.aglt2.org:9619';
    const score = await adOf(config, endpoint, 'SCORE');
    expect(score.GridResource).to.equal(`"condor gate01.aglt2.org ${endpoint}"`);
    expect(score.Arguments ?? score.Args).to.match(
      /--resource-type SCORE --pilotversion 3\.12\.4\.1 .*--verbose/,
    );
    expect(score).to.include({
      cores: '1',
      coresPerNode: '8',
      memory: '2000',
      disk: String(106_498 * 1024),
      wall: '258000',
      gpus: '1',
      remote_queue: '"default"',
    });
    expect(await adOf(config, endpoint, 'MCORE_HIMEM')).to.include({ cores: '8', memory: '48000' });
  });

  it('has the queue, cores and wall time of special_par', async () => {
    const special_par = '(queue=long)(xcount=4)(maxWallTime=3600)';
    const config = await configured('AGLT2', { special_par, capability: 'mcore' });
    const ad = await adOf(config, 'gate01.aglt2.org:9619', 'MCORE_HIMEM');
    expect(ad).to.include({ cores: '4', wall: '3600', remote_queue: '"long"' });
  });

  it('goes to one CE that stands twice by the entry whose queue is not default', async () => {
    const ce = { ce_endpoint: 'condor://ce.example.org', ce_flavour: 'HTCondor-CE', ce_state: 'active' };
    const queues = [
      { ...ce, ce_queue_name: 'grid' },
      { ...ce, ce_queue_name: 'default', ce_endpoint: 'ce.example.org:9619' },
    ];
    const { ces } = cesOf(submitterOf(await configured('AGLT2', { queues })));
    expect(ces.map(({ endpoint, queueName }) => [endpoint, queueName])).to.deep.equal([
      ['ce.example.org:9619', 'grid'],
    ]);
  });
});

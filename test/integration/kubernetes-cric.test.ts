import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { partOfSlot } from '../../src/agents/submission/entries.ts';
import { requirementsOf } from '../../src/agents/submission/worker-maker.ts';
import type { QueueConfig } from '../../src/config/queues/queues.ts';
import { namespaceOf, type K8sSubmitterConfig } from '../../src/plugins/kubernetes/schema.ts';
import { fill } from '../../src/plugins/kubernetes/template/fill.ts';
import { loadTemplate } from '../../src/plugins/kubernetes/template/template.ts';
import { shapeOf } from '../../src/sources/panda/shape.ts';
import type { JsonObject } from '../../src/util/json.ts';
import { judgeWithCric } from '../support/cric-site.ts';
import { jobTemplate, kubernetesQueue, kubernetesSite } from '../support/kubernetes-site.ts';
import { controlPlane, type ControlPlane, type KubeObject, type Namespace } from '../support/kubernetes.ts';
import { files } from '../support/operator-files.ts';
import { workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const fixtures = resolve(import.meta.dirname, '../fixtures/cric');
const read = (name: string): unknown => JSON.parse(readFileSync(join(fixtures, name), 'utf8'));
const { TEST_K8S: known } = read('pandaqueues.json') as { TEST_K8S: JsonObject };
const types = read('resource_types.json') as Parameters<typeof shapeOf>[1];

/** Every parameter of Kubernetes that CRIC has, away from its default. */
const everyParameter = {
  'k8s.host_image': 'busybox:1.36',
  'k8s.volumes.pilot_dir_mount': '/scratch',
  'k8s.annotations.safe_to_evict': false,
  'k8s.scheduler.use_score_mcore_affinity': true,
  'k8s.scheduler.use_score_mcore_anti_affinity': true,
  'k8s.scheduler.priorityClassName.mcore': 'system-node-critical',
  'k8s.resources.requests.cpu_scheduling_ratio': 50,
  'k8s.resources.requests.memory_scheduling_ratio': 80,
  'k8s.resources.limits.use_memory_limit': true,
  'k8s.resources.limits.memory_limit_safety_factor': 150,
  'k8s.resources.limits.memory_limit_min_offset': 200,
  'k8s.resources.use_ephemeral_storage_resource_specs': true,
  'k8s.resources.ephemeral_storage_offset': 100,
  'k8s.resources.limits.ephemeral_storage_limit_safety_factor': 110,
  'k8s.use_active_deadline_seconds': true,
  pilot_url: 'https://pilot.example/pilot.tar.gz',
};

interface MadePod extends KubeObject {
  readonly spec: {
    readonly activeDeadlineSeconds?: number;
    readonly containers: readonly {
      readonly image: string;
      readonly resources: { readonly requests: Readonly<Record<string, string>> };
    }[];
  };
}

describe('a queue of Kubernetes with the options of CRIC', () => {
  let plane: ControlPlane;
  let space: Namespace;
  let directory: string;

  before(async () => {
    plane = await controlPlane();
  });
  beforeEach(async () => {
    space = await plane.namespace('cric');
    directory = temporaryDirectory();
    plane.writeKubeconfig(join(directory, 'kubeconfig'));
    const containers = [{ name: 'pilot', image: 'atlas', command: ['pilot'] }];
    writeFileSync(join(directory, 'job.yaml'), stringify(jobTemplate({}, { containers })));
  });
  afterEach(() => space[Symbol.asyncDispose]());

  /** The queue's configuration by a queue file that says next to nothing. CRIC names its namespace by a CE. */
  async function configured(changes: JsonObject): Promise<QueueConfig> {
    const nowhere = { k8s_namespace: '' };
    const queue = kubernetesQueue(space, { submitter: nowhere, monitor: nowhere, sweeper: nowhere });
    const entry = { ...known, queues: [{ ce_queue_name: space.name }], ...changes };
    const { TEST_K8S: verdict } = await judgeWithCric(directory, { TEST_K8S: queue }, { TEST_K8S: entry });
    if (verdict?.config === undefined) throw new Error(JSON.stringify(verdict?.problems));
    expect(verdict.problems).to.deep.equal([]);
    return verdict.config;
  }

  /** The Pod that the API server would make for a worker of this resource type. */
  async function dryRun(config: QueueConfig, type: string) {
    const submitter = config.plugins.submitter?.config as unknown as K8sSubmitterConfig;
    const loaded = await loadTemplate(files, join(directory, 'job.yaml'), {
      namespace: namespaceOf(submitter),
    });
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const slot = requirementsOf(config);
    const site = { coreCount: slot.nCore, maxRss: slot.minRamCount };
    const requirements = partOfSlot({ ...slot, ...shapeOf(type, types, site) }, slot, config.worker);
    const options = { factoryId: 'f', harvesterId: 'thresher-test', hostname: 'h', config: submitter };
    const job = fill(loaded.template, workerOf(7, { queue: 'TEST_K8S', requirements }), options);
    const path = `${space.jobs()}?dryRun=All&fieldValidation=Strict`;
    const { status, text } = await space.client.raw('POST', path, job);
    if (status !== 201) throw new Error(text);
    return JSON.parse(text) as typeof job;
  }

  it('takes the values of the fixture: a SCORE and an MCORE pilot', async () => {
    const config = await configured({});
    expect(config.limits).to.include({ nQueueLimitWorker: 1 });
    const score = await dryRun(config, 'SCORE');
    expect(score.metadata.namespace).to.equal(space.name);
    const { spec, metadata } = score.spec.template;
    // Priority classes are checked with the Pod, not with the Job.
    expect(spec).to.include({ priorityClassName: 'low', activeDeadlineSeconds: 172_800 });
    expect(metadata?.annotations).to.include({ 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' });
    expect(spec.containers[0]?.resources).to.deep.equal({
      requests: { cpu: '900m', memory: '2000Mi', 'ephemeral-storage': '10000Mi' },
      limits: { cpu: '1', memory: '3000Mi', 'ephemeral-storage': '10000Mi' },
    });
    const mcore = await dryRun(config, 'MCORE');
    expect(mcore.spec.template.spec).to.not.have.property('priorityClassName');
    expect(mcore.spec.template.spec.containers[0]?.resources).to.deep.equal({
      requests: { cpu: '7200m', memory: '16000Mi', 'ephemeral-storage': '80000Mi' },
      limits: { cpu: '8', memory: '24000Mi', 'ephemeral-storage': '80000Mi' },
    });
  });

  it('takes every parameter that CRIC has', async () => {
    const config = await configured({ params: everyParameter, pilot_version: 3, python_version: '3' });
    const { spec } = (await dryRun(config, 'MCORE')).spec.template;
    const [pilot] = spec.containers;
    expect(spec).to.include({ priorityClassName: 'system-node-critical' });
    expect(pilot).to.include({ image: 'busybox:1.36' });
    expect(pilot?.resources).to.deep.equal({
      requests: { cpu: '4', memory: '12800Mi', 'ephemeral-storage': '80100Mi' },
      limits: { cpu: '8', memory: '24000Mi', 'ephemeral-storage': '88110Mi' },
    });
    expect(pilot?.volumeMounts?.map(({ mountPath }) => mountPath)).to.include('/scratch');
    const environment = Object.fromEntries((pilot?.env ?? []).map(({ name, value }) => [name, value]));
    expect(environment).to.include({
      HOME: '/scratch',
      pilotUrlOpt: '--piloturl https://pilot.example/pilot.tar.gz',
      pilotVersion: '3',
      storageRequestMiB: '80100',
    });
    expect(spec.affinity).to.have.all.keys('podAntiAffinity');
  });
});

describe('a daemon whose queue has next to nothing of its own', () => {
  let plane: ControlPlane;

  before(async () => {
    plane = await controlPlane();
  });

  it('runs no workers while CRIC has it in maintenance, and then those that CRIC says', async () => {
    await using space = await plane.namespace('cric');
    const nowhere = { k8s_namespace: '' };
    const sections = { submitter: nowhere, monitor: nowhere, sweeper: nowhere };
    // A queue that names `fill` itself does not wait for CRIC: it could run before its file is fetched for the first time.
    const limits = { demand: undefined, maxWorkers: 2, nQueueLimitWorker: 2 };
    const queue = kubernetesQueue(space, { ...sections, queue: limits });
    const site = kubernetesSite(plane, {
      queues: { TEST_K8S: queue },
      settings: {
        master: { harvester_id: 'thresher-test' },
        submitter: { defaultDemand: 'fill' },
        cacher: { data: ['panda_queues.json||file:cric.json'], refreshInterval: 0.01, sleepTime: 0.5 },
      },
    });
    const params = { 'k8s.host_image': 'busybox:1.36', 'k8s.annotations.safe_to_evict': false };
    const write = (changes: JsonObject) => {
      const entry = { ...known, params, queues: [{ ce_queue_name: space.name }], ...changes };
      // As a server does it, the file is there whole.
      writeFileSync(site.path('cric.new'), JSON.stringify({ TEST_K8S: entry }));
      renameSync(site.path('cric.new'), site.path('cric.json'));
    };
    const settings = parse(readFileSync(site.config, 'utf8')) as { cacher: { data: string[] } };
    settings.cacher.data = [`panda_queues.json||file://${site.path('cric.json')}`];
    writeFileSync(site.config, stringify(settings));
    write({ status: 'maintenance' });
    try {
      site.start();
      await until('CRIC closes the queue', async () => {
        const [shown] = await site.queues();
        return shown?.state === 'maintenance' && shown.reasons.some(({ code }) => code === 'cric-status');
      });
      expect(await site.workers()).to.deep.equal([]);
      expect(await space.client.list(space.jobs())).to.deep.equal([]);
      write({ status: 'online' });
      const workers = await until('both run', async () => {
        const running = await site.workers({ status: 'running' });
        return running.length === 2 && running;
      });
      expect(workers[0]).to.include({ nCore: 8, resourceType: 'MCORE' });
      const [pod] = await space.client.list<MadePod>(space.core('pods'));
      const [pilot] = pod?.spec.containers ?? [];
      expect(pilot?.image).to.equal('busybox:1.36');
      expect(pilot?.resources.requests).to.include({ cpu: '7200m', memory: '16000Mi' });
      expect(pod?.spec.activeDeadlineSeconds).to.equal(172_800);
    } finally {
      await site.clean();
    }
  });
});

import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { type FillOptions, placeholdersOf } from '../../../../src/plugins/kubernetes/template/environment.ts';
import { type FilledJob, fill } from '../../../../src/plugins/kubernetes/template/fill.ts';
import { identityOf, isLabelValue } from '../../../../src/plugins/kubernetes/marks.ts';
import { quantityOf } from '../../../../src/clients/kubernetes/quantity.ts';
import { K8sSubmitterConfig } from '../../../../src/plugins/kubernetes/schema.ts';
import type { EnvEntry } from '../../../../src/plugins/kubernetes/template/template-shape.ts';
import {
  type KubernetesTemplate,
  loadTemplate,
  parseTemplate,
} from '../../../../src/plugins/kubernetes/template/template.ts';
import { check } from '../../../../src/util/schema.ts';
import type { Requirements, Worker } from '../../../../src/worker/worker.ts';
import { files } from '../../../support/operator-files.ts';
import { requirements, textsOfRows, workerOf } from '../../../support/samples.ts';

const cern = join(import.meta.dirname, '../../../fixtures/kubernetes/job_cern.yaml');

function optionsOf(
  config: Readonly<Record<string, unknown>> = {},
  changes: Partial<FillOptions> = {},
): FillOptions {
  const checked = check(K8sSubmitterConfig, { k8s_yaml_file: 'a.yaml', k8s_namespace: 'pilots', ...config });
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return {
    factoryId: 'factory',
    harvesterId: 'CERN_central',
    hostname: 'host1',
    config: checked.value,
    ...changes,
  };
}

/** JSON is YAML whose strings are all in quotes: none of them is read as something else. */
function templateOf(object: unknown, pilotContainer?: string): KubernetesTemplate {
  const loaded = parseTemplate(
    JSON.stringify(object),
    'a.yaml',
    pilotContainer === undefined ? {} : { pilotContainer },
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.template;
}

/** A template whose pilot and Pod have these keys too. */
function template(pilot: object = {}, pod: object = {}, job: object = {}): KubernetesTemplate {
  const containers = [{ name: 'pilot', image: 'busybox', command: ['pilot'], ...pilot }];
  return templateOf({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'mine', labels: { team: 'atlas' } },
    spec: {
      backoffLimit: 0,
      podReplacementPolicy: 'Failed',
      ...job,
      template: {
        metadata: { annotations: { note: 'mine' } },
        spec: { restartPolicy: 'Never', containers, ...pod },
      },
    },
  });
}

const needing = (changes: Partial<Requirements>): Worker =>
  workerOf(17, { queue: 'CERN_PROD', requirements: { ...requirements, ...changes } });
const worker = needing({});
const podOf = (job: FilledJob) =>
  job.spec.template.spec as FilledJob['spec']['template']['spec'] & Record<string, unknown>;
const pilotOf = (job: FilledJob, name = podOf(job).containers[0]!.name) =>
  podOf(job).containers.find((one) => one.name === name)!;
const envOf = (job: FilledJob, name?: string) => (pilotOf(job, name).env ?? []) as EnvEntry[];
const valueOf = (job: FilledJob, variable: string) => envOf(job).find(({ name }) => name === variable);

describe("a worker's Job", () => {
  it('is named after the worker and tells operators whose it is', () => {
    const { metadata, spec } = fill(template(), worker, optionsOf());
    expect(metadata.name).to.equal('factory-17');
    expect(metadata.namespace).to.equal('pilots');
    const marks = {
      'thresher/factory': 'factory',
      'thresher/worker-id': '17',
      'thresher/queue': 'CERN_PROD',
    };
    const usual = { resourceType: 'SCORE', prodSourceLabel: 'managed', pq: 'CERN_PROD' };
    expect(metadata.labels).to.deep.equal({ ...usual, ...marks, team: 'atlas' });
    expect(spec.template.metadata?.labels).to.deep.equal({ ...usual, ...marks });
    const { annotations } = spec.template.metadata ?? {};
    expect(annotations).to.include({
      note: 'mine',
      'kubectl.kubernetes.io/default-container': 'pilot',
      'thresher/queue': 'CERN_PROD',
      'thresher/config': '1',
      'thresher/pilot-container': 'pilot',
    });
    expect(identityOf(metadata)).to.deep.equal(worker);
    // A Pod whose Job is gone still says who it is.
    const pod = { name: 'factory-17-abcde', labels: marks, annotations: annotations ?? {} };
    expect(identityOf(pod, 'factory-17')).to.deep.equal(worker);
    expect(identityOf(pod, 'a-copy')).to.equal(undefined);
  });

  it("has Harvester's whole environment, each variable once, with job_cern.yaml", async () => {
    const loaded = await loadTemplate(files, cern);
    if (!loaded.ok) throw new Error('job_cern.yaml');
    const config = {
      proxySecretPath: '/proxy/p',
      logBaseURL: 'https://log',
      tokenDir: '/t',
      pandaTokenFilename: 'f',
      pandaTokenKeyFilename: 'k',
      pilot_version: '3.2.1',
    };
    const job = fill(loaded.template, needing({ maxDiskCount: 1000 }), optionsOf(config));
    const env = envOf(job);
    const names = env.map(({ name }) => name);
    expect(new Set(names).size).to.equal(names.length);
    const values = Object.fromEntries(env.map(({ name, value, valueFrom }) => [name, value ?? valueFrom]));
    expect(values).to.deep.equal({
      computingSite: 'CERN_PROD',
      pandaQueueName: 'CERN_PROD',
      resourceType: 'SCORE',
      pilotType: 'PR',
      pilotUrlOpt: '',
      pythonOption: '--pythonversion 3',
      pilotVersion: '3.2.1',
      proxySecretPath: '/proxy/p',
      PANDA_AUTH_ORIGIN: 'atlas.pilot',
      PANDA_AUTH_DIR: '/t',
      PANDA_AUTH_TOKEN: 'f',
      PANDA_AUTH_TOKEN_KEY: 'k',
      workerID: '17',
      logs_frontend_w: 'https://log',
      logs_frontend_r: 'https://log',
      PANDA_JSID: 'harvester-CERN_central',
      HARVESTER_WORKER_ID: '17',
      HARVESTER_ID: 'CERN_central',
      submit_mode: 'PULL',
      EXEC_DIR: '/scratch/executables',
      TMPDIR: '/root',
      HOME: '/pilotdir',
      PANDA_HOSTNAME: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } },
      K8S_JOB_ID: 'factory-17',
      prodSourceLabel: 'unified',
      jobType: 'unified',
      storageRequestMiB: '1000',
      storageLimitMiB: '1000',
      PILOT_NOKILL: 'True',
      THRESHER_FACTORY: 'factory',
      nCore: '1',
      minRamCount: '2000',
      maxWalltime: '3600',
    });
    // What the operator wrote keeps its order, after ours.
    expect(names.slice(-12)).to.deep.equal(
      loaded.template.job.spec.template.spec.containers[0]?.env?.map(({ name }) => name),
    );
  });

  it('fills "$name" in every container, and gives the environment to the pilot alone', () => {
    const two = templateOf(
      {
        apiVersion: 'batch/v1',
        kind: 'Job',
        spec: {
          template: {
            spec: {
              restartPolicy: 'Never',
              initContainers: [{ name: 'setup', image: 'a', env: [{ name: 'Q', value: '$pandaQueueName' }] }],
              containers: [
                {
                  name: 'log',
                  image: 'a',
                  env: [
                    { name: 'N', value: '$PANDA_HOSTNAME' },
                    { name: 'C', value: '$nCore' },
                  ],
                },
                { name: 'work', image: 'a' },
              ],
            },
          },
        },
      },
      'work',
    );
    const job = fill(two, worker, optionsOf());
    expect(podOf(job).initContainers?.[0]?.env).to.deep.equal([{ name: 'Q', value: 'CERN_PROD' }]);
    expect(envOf(job, 'log')).to.deep.equal([
      { name: 'N', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } },
      { name: 'C', value: '1' },
    ]);
    expect(podOf(job).containers[0]).to.not.have.property('resources');
    expect(envOf(job, 'work').find(({ name }) => name === 'workerID')?.value).to.equal('17');
    expect(job.spec.template.metadata?.annotations).to.include({ 'thresher/pilot-container': 'work' });
  });

  it('keeps literals, and replaces who the worker is in place', () => {
    const env = [
      { name: 'TMPDIR', value: '/mine' },
      { name: 'pilotVersion', value: '' },
      { name: 'workerID', value: '5' },
      { name: 'HOME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'computingSite' },
    ];
    const job = fill(template({ env }), worker, optionsOf());
    expect(envOf(job).slice(-5)).to.deep.equal([
      env[0],
      env[1],
      { name: 'workerID', value: '17' },
      env[3],
      { name: 'computingSite', value: 'CERN_PROD' },
    ]);
  });

  it('puts placeholders in parsed values, and makes them inert where the kubelet expands', () => {
    const odd = workerOf(1234567, { queue: '$(HOME)', computingSite: '$nCore' });
    const job = fill(
      template({
        command: ['sh', '-c', 'echo ${queueName} ${HOME} $${workerID}'],
        env: [
          { name: 'A', value: 'x-${queueName}-${_workerID_3.2}' },
          { name: 'B', value: '${computingSite}' },
          { name: 'C', value: '$computingSite' },
        ],
        lifecycle: { note: '${queueName}' },
      }),
      odd,
      optionsOf(),
    );
    expect(pilotOf(job).command).to.deep.equal(['sh', '-c', 'echo $$(HOME) ${HOME} ${workerID}']);
    expect(envOf(job).slice(-3)).to.deep.equal([
      { name: 'A', value: 'x-$$(HOME)-45' },
      { name: 'B', value: '$$nCore' },
      { name: 'C', value: '$$nCore' },
    ]);
    expect(pilotOf(job)).to.have.nested.property('lifecycle.note', '$(HOME)');
    expect(valueOf(job, 'pandaQueueName')?.value).to.equal('$$(HOME)');
  });

  it('gets the content of a proxy from a Secret', () => {
    const env = [{ name: 'PROXY', value: '$proxyContent' }];
    const proxySecret = { name: 'thresher-proxy-abc', key: 'proxy' };
    const job = fill(template({ env }), worker, optionsOf({}, { proxySecret }));
    const valueFrom = { secretKeyRef: proxySecret };
    expect(valueOf(job, 'proxyContent')).to.deep.equal({ name: 'proxyContent', valueFrom });
    expect(valueOf(job, 'PROXY')).to.deep.equal({ name: 'PROXY', valueFrom });
    expect(valueOf(fill(template(), worker, optionsOf()), 'proxyContent')).to.equal(undefined);
  });

  for (const [pilotType, label, option, url] of [
    ['PR', 'unified', 'PR', ''],
    ['RC', 'rc_test2', 'RC', '--piloturl http://cern.ch/atlas-panda-pilot/pilot3-dev.tar.gz'],
    ['ALRB', 'rc_alrb', 'ALRB', ''],
    ['PT', 'ptest', 'PR', '--piloturl http://cern.ch/atlas-panda-pilot/pilot3-dev2.tar.gz'],
    ['constructor', 'unified', 'PR', ''],
  ] as const) {
    it(`gives a pilot of type ${pilotType} Harvester's options`, () => {
      const job = fill(template(), needing({ pilotType }), optionsOf());
      const values = ['prodSourceLabel', 'pilotType', 'pilotUrlOpt'].map((name) => valueOf(job, name)?.value);
      expect(values).to.deep.equal([label, option, url]);
    });
  }

  it('takes the URL of the pilot from the queue', () => {
    const job = fill(template(), needing({ pilotType: 'RC' }), optionsOf({ pilot_url: 'https://a/b' }));
    expect(valueOf(job, 'pilotUrlOpt')?.value).to.equal('--piloturl https://a/b');
  });

  for (const [what, config, changes, written, expected] of [
    [
      'cores and memory as they are',
      {},
      { nCore: 8 },
      undefined,
      { requests: { cpu: '8', memory: '2000Mi' }, limits: { cpu: '8' } },
    ],
    [
      'cpuAdjustRatio and memoryAdjustRatio',
      { cpuAdjustRatio: 90, memoryAdjustRatio: 50 },
      {},
      undefined,
      { requests: { cpu: '900m', memory: '1000Mi' }, limits: { cpu: '1' } },
    ],
    [
      "CRIC's ratios before them",
      { cpuAdjustRatio: 90, 'k8s.resources.requests.cpu_scheduling_ratio': 50 },
      {},
      undefined,
      { requests: { cpu: '500m', memory: '2000Mi' }, limits: { cpu: '1' } },
    ],
    [
      'a limit no less than a ratio above 100',
      { cpuAdjustRatio: 150 },
      {},
      undefined,
      { requests: { cpu: '1500m', memory: '2000Mi' }, limits: { cpu: '1500m' } },
    ],
    [
      'a memory limit by its factor',
      {
        'k8s.resources.limits.use_memory_limit': true,
        'k8s.resources.limits.memory_limit_safety_factor': 150,
        'k8s.resources.limits.memory_limit_min_offset': 500,
      },
      {},
      undefined,
      { requests: { cpu: '1', memory: '2000Mi' }, limits: { cpu: '1', memory: '3000Mi' } },
    ],
    [
      'a memory limit by its offset',
      { 'k8s.resources.limits.use_memory_limit': true, 'k8s.resources.limits.memory_limit_min_offset': 500 },
      {},
      undefined,
      { requests: { cpu: '1', memory: '2000Mi' }, limits: { cpu: '1', memory: '2500Mi' } },
    ],
    [
      'no memory where none is said',
      {},
      { minRamCount: 0 },
      undefined,
      { requests: { cpu: '1' }, limits: { cpu: '1' } },
    ],
    [
      'disk',
      {
        'k8s.resources.ephemeral_storage_offset': 24,
        'k8s.resources.limits.ephemeral_storage_limit_safety_factor': 200,
      },
      { maxDiskCount: 1000, minRamCount: 0 },
      undefined,
      {
        requests: { cpu: '1', 'ephemeral-storage': '1024Mi' },
        limits: { cpu: '1', 'ephemeral-storage': '2048Mi' },
      },
    ],
    [
      'no disk where that is switched off',
      { 'k8s.resources.use_ephemeral_storage_resource_specs': false },
      { maxDiskCount: 1000, minRamCount: 0 },
      undefined,
      { requests: { cpu: '1' }, limits: { cpu: '1' } },
    ],
    [
      "nothing over the template's",
      {},
      { nCore: 8 },
      { requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: 3, gpu: 1 } },
      { requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: 3, gpu: 1 } },
    ],
    [
      "no request above the template's limit",
      {},
      { nCore: 8 },
      { limits: { cpu: 2, memory: '1Gi' } },
      { requests: { cpu: 2, memory: '1Gi' }, limits: { cpu: 2, memory: '1Gi' } },
    ],
    [
      "no limit below the template's request",
      {},
      {},
      { requests: { cpu: 4 } },
      { requests: { cpu: 4, memory: '2000Mi' }, limits: { cpu: '4' } },
    ],
  ] as const) {
    it(`asks for ${what}`, () => {
      const job = fill(template(written ? { resources: written } : {}), needing(changes), optionsOf(config));
      expect(pilotOf(job).resources).to.deep.equal(expected);
    });
  }

  it('has a directory for the pilot, unless the template has one', () => {
    const mounted = fill(template(), worker, optionsOf());
    expect(podOf(mounted).volumes).to.deep.equal([{ name: 'pilot-dir', emptyDir: {} }]);
    expect(pilotOf(mounted).volumeMounts).to.deep.equal([{ name: 'pilot-dir', mountPath: '/pilotdir' }]);
    const own = template(
      { volumeMounts: [{ name: 'big', mountPath: '/pilotdir/' }] },
      { volumes: [{ name: 'big', emptyDir: {} }] },
    );
    expect(pilotOf(fill(own, worker, optionsOf())).volumeMounts).to.deep.equal([
      { name: 'big', mountPath: '/pilotdir/' },
    ]);
    const sized = template({}, { volumes: [{ name: 'pilot-dir', emptyDir: { sizeLimit: '1Gi' } }] });
    expect(podOf(fill(sized, worker, optionsOf())).volumes).to.deep.equal([
      { name: 'pilot-dir', emptyDir: { sizeLimit: '1Gi' } },
    ]);
    const without = fill(
      template(),
      worker,
      optionsOf({ 'k8s.resources.use_ephemeral_storage_resource_specs': false }),
    );
    expect(podOf(without)).to.not.have.property('volumes');
  });

  const silent = { command: undefined };
  const mount = { name: 'pilots-starter', mountPath: '/scratch/executables' };
  const volume = { name: 'pilots-starter', configMap: { name: 'pilots-starter' } };

  it("starts thresher's starter from Harvester's ConfigMap where the template has no command", () => {
    const job = fill(template(silent), worker, optionsOf());
    expect(pilotOf(job)).to.deep.include({
      command: ['/usr/bin/bash'],
      args: ['-c', 'cd; exec python3 $EXEC_DIR/pilots_starter.py'],
    });
    expect(pilotOf(job).volumeMounts).to.deep.include(mount);
    expect(podOf(job).volumes).to.deep.include(volume);
    expect(job.metadata).to.have.nested.property('labels.thresher/pilots-starter', 'pilots-starter');
  });

  for (const [what, pilot, pod] of [
    ['its command names EXEC_DIR', { command: ['sh', '-c', 'python3 ${EXEC_DIR}/pilots_starter.py'] }, {}],
    ['a volume is of that ConfigMap', { command: ['mine'] }, { volumes: [volume] }],
  ] as const) {
    it(`mounts the starter and keeps the template's own command where ${what}`, () => {
      const job = fill(template(pilot, pod), worker, optionsOf());
      expect(pilotOf(job).command).to.deep.equal(pilot.command);
      expect(pilotOf(job).volumeMounts).to.deep.include(mount);
      expect(podOf(job).volumes?.filter(({ name }) => name === volume.name)).to.deep.equal([volume]);
    });
  }

  it('has no starter where the template has a command, or the queue wants none', () => {
    const none = [
      fill(template({ command: ['mine'] }), worker, optionsOf()),
      fill(template(silent), worker, optionsOf({ pilotsStarterConfigMap: '' })),
    ];
    for (const job of none) expect(JSON.stringify(job)).to.not.include('pilots-starter');
    expect(none.map((job) => pilotOf(job).command)).to.deep.equal([['mine'], undefined]);
  });

  it("starts the operator's own starter from the ConfigMap that the queue names", () => {
    const options = optionsOf({ pilotsStarterConfigMap: 'theirs' });
    const job = fill(template(silent), worker, options);
    expect(pilotOf(job).args).to.deep.equal(['-c', 'cd; python3 $EXEC_DIR/pilots_starter.py']);
    expect(pilotOf(job).volumeMounts).to.deep.include(mount);
    expect(podOf(job).volumes).to.deep.include({ name: 'pilots-starter', configMap: { name: 'theirs' } });
    expect(job.metadata).to.not.have.nested.property('labels.thresher/pilots-starter');
    expect(pilotOf(fill(template({ command: ['mine'] }), worker, options)).command).to.deep.equal(['mine']);
  });

  const logServer = { write: 'https://cache.example/server/panda', read: 'https://cache.example/cache' };

  it('names the address of its log, and writes to the log cache of the settings', () => {
    const job = fill(template(), worker, optionsOf({}, { logServer }));
    expect(valueOf(job, 'logs_frontend_w')?.value).to.equal(logServer.write);
    expect(valueOf(job, 'logs_frontend_r')?.value).to.equal(logServer.read);
    const url = 'https://cache.example/cache/CERN_central_17_gz.out';
    expect((job.metadata as { annotations: object }).annotations).to.include({ 'thresher/stdOut': url });
    expect(job.spec.template.metadata?.annotations).to.include({ 'thresher/stdOut': url });
  });

  it('writes to the address of the settings before logBaseURL, as Harvester does, and to its own option before both', () => {
    const { log, ...own } = { log: { logBaseURL: 'https://log' }, logs_frontend_w: 'https://own' };
    const placesOf = (config: Readonly<Record<string, unknown>>) => {
      const job = fill(template(), worker, optionsOf(config, { logServer }));
      return ['logs_frontend_w', 'logs_frontend_r'].map((name) => valueOf(job, name)?.value);
    };
    expect(placesOf(log)).to.deep.equal([logServer.write, logServer.read]);
    expect(placesOf({ ...log, ...own })).to.deep.equal(['https://own', logServer.read]);
  });

  it("writes to logBaseURL of its queue where the settings name no log server, with this machine's short name", () => {
    const options = optionsOf({ logBaseURL: 'https://$hostname/logs' }, { hostname: 'host1.site.org' });
    const job = fill(template(), worker, options);
    expect(valueOf(job, 'logs_frontend_w')?.value).to.equal('https://host1/logs');
    expect(placeholdersOf(worker, options).hostname).to.equal('host1');
    expect(fill(template(), worker, optionsOf()).metadata).to.not.have.nested.property(
      'annotations.thresher/stdOut',
    );
  });

  it('is scheduled as the queue says, and as the template says before that', () => {
    const config = {
      schedulerName: 'node-packing',
      'k8s.scheduler.priorityClassName': 'low',
      'k8s.scheduler.priorityClassName.mcore': 'high',
      'k8s.host_image': 'almalinux:9',
      'k8s.annotations.safe_to_evict': false,
    };
    const job = fill(template(), worker, optionsOf(config));
    expect(podOf(job)).to.deep.include({
      schedulerName: 'node-packing',
      priorityClassName: 'low',
      activeDeadlineSeconds: 3600,
    });
    expect(pilotOf(job).image).to.equal('almalinux:9');
    expect(job.spec.template.metadata?.annotations).to.include({
      'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
    });
    expect(job.spec.ttlSecondsAfterFinished).to.equal(172_800);
    const multi = fill(template(), needing({ resourceType: 'MCORE' }), optionsOf(config));
    expect(podOf(multi).priorityClassName).to.equal('high');
    const own = {
      schedulerName: 's',
      priorityClassName: 'p',
      activeDeadlineSeconds: 5,
      affinity: { nodeAffinity: {} },
    };
    expect(podOf(fill(template({}, own), worker, optionsOf(config)))).to.deep.include(own);
    const ownJob = fill(
      template({}, {}, { ttlSecondsAfterFinished: 7200, activeDeadlineSeconds: 9, suspend: true }),
      worker,
      optionsOf(),
    );
    expect(ownJob.spec).to.deep.include({
      ttlSecondsAfterFinished: 7200,
      activeDeadlineSeconds: 9,
      suspend: true,
    });
    expect(podOf(ownJob)).to.not.have.property('activeDeadlineSeconds');
  });

  it('has no deadline without a wall time, or where the queue wants none', () => {
    const off = optionsOf({ 'k8s.use_active_deadline_seconds': false });
    expect(podOf(fill(template(), worker, off))).to.not.have.property('activeDeadlineSeconds');
    expect(podOf(fill(template(), needing({ maxWalltime: 0 }), optionsOf()))).to.not.have.property(
      'activeDeadlineSeconds',
    );
  });

  it('keeps single-core and multi-core pilots together or apart', () => {
    const typesOf = (resourceType: string, anti: boolean) => {
      const config = { 'k8s.scheduler.use_score_mcore_anti_affinity': anti };
      const affinity = podOf(fill(template(), needing({ resourceType }), optionsOf(config))).affinity ?? {};
      return Object.fromEntries(
        Object.entries(affinity).map(([kind, rules]) => [
          kind,
          /"values":\[([^\]]*)\]/.exec(JSON.stringify(rules))?.[1],
        ]),
      );
    };
    // c19: servers have more than the four that Harvester once knew.
    const named = (cores: string) =>
      ['', '_HIMEM', '_LOMEM', '_VHIMEM'].map((memory) => `"${cores}${memory}"`).join();
    const all = `${named('SCORE')},${named('MCORE')}`;
    expect(typesOf('SCORE', false)).to.deep.equal({ podAffinity: all });
    expect(typesOf('MCORE', false)).to.deep.equal({});
    expect(typesOf('SCORE_HIMEM', true)).to.deep.equal({
      podAffinity: all,
      podAntiAffinity: named('MCORE'),
    });
    expect(typesOf('MCORE', true)).to.deep.equal({ podAntiAffinity: named('SCORE') });
    expect(typesOf('SCORE_OF_OURS', false)).to.deep.equal({ podAffinity: `${all},"SCORE_OF_OURS"` });
    const off = optionsOf({ 'k8s.scheduler.use_score_mcore_affinity': false });
    expect(podOf(fill(template(), worker, off))).to.not.have.property('affinity');
  });

  it('is in the namespace of the queue, in "default" where that is empty', () => {
    const namespace = (config: object) =>
      fill(template(), worker, optionsOf({ k8s_namespace: '', ...config })).metadata.namespace;
    expect(namespace({})).to.equal('default');
    expect(namespace({ 'k8s.namespace': 'cric' })).to.equal('cric');
    expect(namespace({ k8s_namespace: 'mine', 'k8s.namespace': 'cric' })).to.equal('mine');
  });
});

describe('filling', () => {
  const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
  const free = fc.string().filter((text) => !/[$]/.test(text));
  const more = fc.dictionary(
    word.map((key) => `x${key}`),
    fc.oneof(free, fc.integer(), fc.boolean(), fc.array(free)),
    { maxKeys: 3 },
  );
  const label = fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?$/);
  const mine = fc.dictionary(word, label, { maxKeys: 3 });
  const containerOf = (name: string) =>
    fc
      .tuple(
        more,
        fc.record(
          {
            env: fc.array(fc.record({ name: word.map((one) => one.toUpperCase()), value: free }), {
              maxLength: 4,
            }),
            resources: fc.record(
              {
                limits: fc.constantFrom({}, { cpu: 2 }, { memory: '3Gi', gpu: 1 }),
                requests: fc.constantFrom({}, { cpu: '500m' }),
              },
              { requiredKeys: [] },
            ),
            command: fc.array(free),
          },
          { requiredKeys: [] },
        ),
      )
      .map(([others, known]) => ({ name, image: 'a', ...others, ...known }));
  const job = fc
    .tuple(
      more,
      mine,
      mine,
      more,
      fc.tuple(containerOf('one'), containerOf('two')),
      fc.array(containerOf('setup'), { maxLength: 1 }),
      fc.boolean(),
    )
    .map(([spec, labels, annotations, pod, containers, initContainers, suspend]) => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'mine', labels, annotations },
      spec: {
        ...spec,
        suspend,
        backoffLimit: 0,
        template: {
          metadata: { labels, annotations },
          spec: { ...pod, restartPolicy: 'Never', containers, initContainers },
        },
      },
    }));
  const anyWorker = fc
    .tuple(
      fc.integer({ min: 1, max: 99_999_999_999 }),
      textsOfRows,
      fc.integer({ min: 1, max: 128 }),
      fc.integer({ min: 0, max: 500_000 }),
    )
    .map(([id, text, nCore, minRamCount]) => {
      // The mark of a worker whose origin has no uid is not believed.
      const queue = text || 'Q';
      return workerOf(id, {
        queue,
        requirements: { ...requirements, nCore, minRamCount, resourceType: text },
      });
    });

  /** Everything of `written` that is not the same in `filled`, but for what filling is documented to replace. */
  function changed(written: unknown, filled: unknown, at = ''): string[] {
    if (at === '/metadata/name') return [];
    if (Array.isArray(written)) {
      const list = filled as unknown[];
      // Our variables come before the operator's.
      const offset = at.endsWith('/env') ? list.length - written.length : 0;
      if (!at.endsWith('/env') && list.length !== written.length) return [at];
      return written.flatMap((item, index) => changed(item, list[offset + index], `${at}/${index}`));
    }
    if (typeof written === 'object' && written !== null) {
      return Object.entries(written).flatMap(([key, value]) =>
        changed(value, (filled as Record<string, unknown> | undefined)?.[key], `${at}/${key}`),
      );
    }
    return written === filled ? [] : [at];
  }

  it('changes nothing that the operator wrote, whatever it is', () => {
    fc.assert(
      fc.property(job, anyWorker, (written, one) => {
        const made = templateOf(written);
        expect(changed(made.job, fill(made, one, optionsOf()))).to.deep.equal([]);
      }),
    );
  });

  it('is pure: the template stays, and the same worker gives the same Job', () => {
    fc.assert(
      fc.property(job, anyWorker, (written, one) => {
        const made = templateOf(written);
        const before = structuredClone(made.job);
        const first = JSON.stringify(fill(made, one, optionsOf()));
        const reordered = Object.fromEntries(Object.entries(one).reverse()) as unknown as Worker;
        expect(JSON.stringify(fill(made, reordered, optionsOf()))).to.equal(first);
        expect(made.job).to.deep.equal(before);
      }),
    );
  });

  it('gives labels that Kubernetes takes, no variable twice, and no request above its limit', () => {
    fc.assert(
      fc.property(job, anyWorker, (written, one) => {
        const distinct = (list: readonly { name: string }[] = []) =>
          new Set(list.map(({ name }) => name)).size === list.length;
        const made = templateOf(written);
        const filled = fill(made, one, optionsOf());
        const labels = [filled.metadata.labels, filled.spec.template.metadata?.labels].flatMap((all) =>
          Object.values(all ?? {}),
        );
        expect(labels.filter((value) => !isLabelValue(value))).to.deep.equal([]);
        const pilot = pilotOf(filled);
        if (distinct(made.job.spec.template.spec.containers[0]?.env))
          expect(distinct(pilot.env)).to.equal(true);
        for (const [name, request] of Object.entries(pilot.resources?.requests ?? {})) {
          const limit = quantityOf(pilot.resources?.limits?.[name]);
          expect(quantityOf(request)! <= (limit ?? Infinity), `${name} ${String(request)}`).to.equal(true);
        }
        expect(identityOf(filled.metadata)).to.deep.equal(one);
      }),
    );
  });
});

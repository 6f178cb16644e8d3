import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Context } from '../../src/plugins/contracts/index.ts';
import { Registry, builtInPlugins } from '../../src/plugins/registry.ts';
import type { Submitter, Worker } from '../../src/plugins/contracts/index.ts';
import { type BackendUnderTest, type Behaviour, describeBackendContract } from '../contract/suite.ts';
import { byQueue, type PayloadBackend, payloadTemplates } from '../contract/payload-cases.ts';
import { type BackendParts, partOf } from '../support/backend-parts.ts';
import { container, controlPlane, type KubeObject, realNode } from '../support/kubernetes.ts';
import { KubernetesBackend } from '../support/kubernetes-backend.ts';
import { pluginContext } from '../support/plugin-context.ts';
import { jobTemplate, untilGone } from '../support/kubernetes-site.ts';
import { recordingLog, workerOf } from '../support/samples.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Which queue's template behaves so. */
const templates: Readonly<Record<Behaviour, Record<string, string>>> = {
  finishes: { run: '100ms' },
  fails: { run: '100ms', exit: '3' },
  runs: {},
};

async function makeBackend(): Promise<BackendUnderTest> {
  const plane = await controlPlane();
  const space = await plane.namespace('contract');
  const directory = temporaryDirectory();
  plane.writeKubeconfig(join(directory, 'kubeconfig'));
  const where = { k8s_config_file: 'kubeconfig', k8s_namespace: space.name };
  for (const [name, play] of Object.entries(templates))
    writeFileSync(join(directory, `${name}.yaml`), stringify(jobTemplate(play)));
  const registry = new Registry(builtInPlugins);
  const make = <K extends keyof BackendParts>(kind: K, context: Context, more: object = {}) => {
    const names = { submitter: 'K8sSubmitter', monitor: 'K8sMonitor', sweeper: 'K8sSweeper' };
    const definition = registry.find(kind, 'thresher/kubernetes', names[kind]);
    return partOf(definition, kind, { ...where, ...more }, context);
  };
  const factory = (factoryId: string) => {
    const context = pluginContext({ factoryId, configDir: directory });
    const submitters = Object.keys(templates).map(
      (name) => [name, make('submitter', context, { k8s_yaml_file: `${name}.yaml` })] as const,
    );
    const byBehaviour = Object.fromEntries(submitters) as Record<Behaviour, Submitter>;
    const submitter: Submitter = {
      preflight: (signal) => byBehaviour.runs.preflight(signal),
      find: (workers, signal) => byBehaviour.runs.find(workers, signal),
      submit: async (workers, signal) => {
        const all = new Map();
        for (const [behaviour, some] of Map.groupBy(workers, ({ queue }) => queue as Behaviour)) {
          for (const [id, outcome] of await byBehaviour[behaviour].submit(some, signal)) all.set(id, outcome);
        }
        return all;
      },
    };
    return {
      submitter,
      monitor: make('monitor', context),
      sweeper: make('sweeper', context),
    };
  };
  let id = 1000;
  const worker = (behaviour: Behaviour, of?: 'other'): Worker => {
    id++;
    return workerOf(id, {
      name: `${of === 'other' ? 'factory-b' : 'factory-a'}-${id}`,
      queue: behaviour,
      placement: `kubernetes:${join(directory, 'kubeconfig')}/${space.name}`,
    });
  };
  return {
    ...factory('factory-a'),
    other: factory('factory-b'),
    worker,
    restarted: () => factory('factory-a'),
    vanish: async ({ name }) => {
      await space.client.delete(space.jobs(name), { propagationPolicy: 'Foreground' });
      await untilGone(() => space.client.find<KubeObject>(space.jobs(name)));
    },
    clean: () => space[Symbol.asyncDispose](),
  };
}

/** On a real node: fake ones run nothing, and mount nothing. */
async function makeForPayloads(): Promise<PayloadBackend> {
  const plane = await realNode();
  const space = await plane.namespace('payload');
  const log = recordingLog();
  const backend = new KubernetesBackend(plane, space, { log });
  for (const [queue, { script, args, env }] of Object.entries(payloadTemplates)) {
    const pilot = {
      ...container('pilot'),
      command: ['/bin/sh', '-c', script, 'pilot', ...args],
      env: Object.entries(env).map(([name, value]) => ({ name, value })),
    };
    backend.write(`${queue}.yaml`, jobTemplate({}, { containers: [pilot] }));
  }
  const make = () => {
    // As much of the node's processor as there may be Pods at once.
    const ratios = { cpuAdjustRatio: 1, memoryAdjustRatio: 1 };
    const submitterOf = (queue: string) =>
      backend.plugin('submitter', { k8s_yaml_file: `${queue}.yaml`, ...ratios }, queue);
    return {
      submitter: byQueue({ plain: submitterOf('plain'), values: submitterOf('values') }),
      monitor: backend.plugin('monitor', {}, 'plain'),
      sweeper: backend.plugin('sweeper', {}, 'plain'),
    };
  };
  return {
    ...make(),
    restarted: make,
    worker: (queue) => backend.worker({ queue }),
    output: async (worker) => {
      const [pod] = await space.podsOf(backend.job(worker));
      if (pod === undefined) throw new Error(`${worker.name} has no Pod`);
      return (await space.client.raw('GET', `${space.core('pods', pod.metadata.name)}/log`)).text;
    },
    traces: async () => {
      const paths = [space.jobs(), ...['pods', 'configmaps', 'events'].map((kind) => space.core(kind))];
      const lists = await Promise.all(paths.map((path) => space.client.list<KubeObject>(path)));
      return JSON.stringify([lists, log.lines]);
    },
    clean: () => space[Symbol.asyncDispose](),
  };
}

describeBackendContract('Kubernetes', makeBackend, makeForPayloads);

import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { container, type ControlPlane, type KubeObject, type Namespace } from './kubernetes.ts';
import { Site, type SiteOptions } from './site.ts';
import { until } from './until.ts';

/** A template of a worker whose Pods live as `play` says (test/env/kubernetes/stages.yaml). */
export function jobTemplate(
  play: Readonly<Record<string, string>> = {},
  podSpec: Readonly<Record<string, unknown>> = {},
  spec: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const annotations = Object.fromEntries(Object.entries(play).map(([key, value]) => [`play/${key}`, value]));
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'pilot' },
    spec: {
      backoffLimit: 0,
      podReplacementPolicy: 'Failed',
      ...spec,
      template: {
        metadata: { annotations },
        spec: { restartPolicy: 'Never', containers: [container('pilot')], ...podSpec },
      },
    },
  };
}

/** The plugin sections of a queue in this namespace, in files of `site` (`kubeconfig`, `TEMPLATE.yaml`). */
export function kubernetesQueue(
  space: Namespace,
  options: {
    readonly template?: string;
    readonly kubeconfig?: string;
    readonly submitter?: Readonly<Record<string, unknown>>;
    readonly monitor?: Readonly<Record<string, unknown>>;
    readonly sweeper?: Readonly<Record<string, unknown>>;
    readonly queue?: Readonly<Record<string, unknown>>;
  } = {},
): Record<string, unknown> {
  const { template = 'job.yaml', kubeconfig = 'kubeconfig' } = options;
  const module = (kind: string) => `pandaharvester.harvester${kind}.k8s_${kind}`;
  const where = { k8s_config_file: kubeconfig, k8s_namespace: space.name };
  return {
    demand: 'fill',
    maxWorkers: 1,
    nQueueLimitWorker: 1,
    submitter: {
      name: 'K8sSubmitter',
      module: module('submitter'),
      ...where,
      k8s_yaml_file: template,
      ...options.submitter,
    },
    monitor: { name: 'K8sMonitor', module: module('monitor'), ...where, ...options.monitor },
    sweeper: { name: 'K8sSweeper', module: module('sweeper'), ...where, ...options.sweeper },
    ...options.queue,
  };
}

/** A site whose queue file may name `kubeconfig` and the templates given here. */
export function kubernetesSite(
  plane: ControlPlane,
  options: SiteOptions,
  templates: Readonly<Record<string, unknown>> = { 'job.yaml': jobTemplate() },
  access: Parameters<ControlPlane['writeKubeconfig']>[1] = {},
): Site {
  const site = new Site(options);
  plane.writeKubeconfig(site.path('kubeconfig'), access);
  for (const [name, template] of Object.entries(templates)) {
    writeFileSync(site.path(name), typeof template === 'string' ? template : stringify(template));
  }
  return site;
}

export function untilGone(find: () => Promise<KubeObject | undefined>): Promise<unknown> {
  return until('it is gone', async () => (await find()) === undefined);
}

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { ControlPlane, Namespace } from '../../test/support/kubernetes.ts';
import { RealDaemon } from '../shared/daemon.ts';
import { jobTemplate } from './job.ts';

/** One queue in one namespace, and the real program on it. */
export class BenchDaemon extends RealDaemon {
  readonly #space: Namespace;

  /** @param spec of the Jobs, beside what every one has */
  constructor(
    directory: string,
    plane: ControlPlane,
    space: Namespace,
    spec: Readonly<Record<string, unknown>>,
  ) {
    super(directory);
    this.#space = space;
    plane.writeKubeconfig(join(directory, 'kubeconfig'));
    writeFileSync(join(directory, 'job.yaml'), stringify(jobTemplate(spec)));
    this.want(0);
  }

  /** So many workers from now on; 0: no more than there are. */
  want(workers: number): void {
    this.wantOf(kubernetesSections(this.#space.name), workers);
  }
}

/** The plugins of a queue whose workers are Jobs of a namespace, of the template `job.yaml`. */
export function kubernetesSections(namespace: string): Readonly<Record<string, unknown>> {
  const module = (kind: string) => `pandaharvester.harvester${kind}.k8s_${kind}`;
  return {
    common: {
      k8s_config_file: 'kubeconfig',
      k8s_namespace: namespace,
      // No limit of its own.
      requestsPerSecond: 1_000_000,
    },
    submitter: {
      name: 'K8sSubmitter',
      module: module('submitter'),
      k8s_yaml_file: 'job.yaml',
      // The scheduler's work on it grows with the square of the Pods.
      'k8s.scheduler.use_score_mcore_affinity': false,
      'k8s.use_active_deadline_seconds': false,
    },
    monitor: { name: 'K8sMonitor', module: module('monitor') },
    sweeper: { name: 'K8sSweeper', module: module('sweeper') },
  };
}

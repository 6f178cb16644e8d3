import { join } from 'node:path';
import { fill, type FilledJob } from '../../src/plugins/kubernetes/template/fill.ts';
import { K8sSubmitterConfig } from '../../src/plugins/kubernetes/schema.ts';
import { loadTemplate } from '../../src/plugins/kubernetes/template/template.ts';
import { systemClock } from '../../src/util/clock.ts';
import { OperatorFiles } from '../../src/util/operator-files.ts';
import { check } from '../../src/util/schema.ts';

/** A pilot as a site would have it: a command, a few variables, a volume. */
export function jobTemplate(spec: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const container = {
    name: 'pilot',
    image: 'registry.example.org/pilot:1',
    imagePullPolicy: 'IfNotPresent',
    command: ['/bin/bash', '-c', 'exec /pilotdir/wrapper -s "$computingSite" -q "$pandaQueueName"'],
    env: [
      { name: 'computingSite', value: '$computingSite' },
      { name: 'pandaQueueName', value: '$pandaQueueName' },
      { name: 'workerID', value: '$workerID' },
    ],
    volumeMounts: [{ name: 'cvmfs', mountPath: '/cvmfs', readOnly: true }],
  };
  const volumes = [{ name: 'cvmfs', hostPath: { path: '/cvmfs' } }];
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'pilot' },
    spec: {
      backoffLimit: 0,
      podReplacementPolicy: 'Failed',
      ...spec,
      template: { spec: { restartPolicy: 'Never', containers: [container], volumes } },
    },
  };
}

/** The very Job that thresher would send for a worker of this daemon's queue, for the loop that is compared with it. */
export async function filledJob(directory: string, namespace: string): Promise<FilledJob> {
  const files = new OperatorFiles({ clock: systemClock });
  const loaded = await loadTemplate(files, join(directory, 'job.yaml'));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const checked = check(K8sSubmitterConfig, {
    k8s_yaml_file: 'job.yaml',
    k8s_namespace: namespace,
    'k8s.scheduler.use_score_mcore_affinity': false,
    'k8s.use_active_deadline_seconds': false,
  });
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  const requirements = {
    nCore: 1,
    minRamCount: 2000,
    maxDiskCount: 0,
    maxWalltime: 3600,
    resourceType: 'SCORE',
    jobType: 'managed',
    pilotType: 'PR',
    prodSourceLabel: 'managed',
  };
  const worker = {
    workerId: 4_000_000_001,
    name: 'thresher-01234567-4000000001',
    queue: 'BENCH',
    computingSite: 'BENCH',
    origin: { kind: 'fill', uid: 'BENCH', index: 1 },
    requirements,
    placement: 'kubernetes',
    configId: 1,
    attempt: 1,
  };
  const options = { factoryId: 'thresher-01234567', harvesterId: 'bench', hostname: 'host.example.org' };
  return fill(loaded.template, worker, { ...options, config: checked.value });
}

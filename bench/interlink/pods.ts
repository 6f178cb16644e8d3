import { randomUUID } from 'node:crypto';
import type { Container, Pod, RetrievedPodData } from '../../src/clients/interlink/wire.ts';
import { recordedBody } from '../../test/support/pods.ts';

/** A body of /create, and the Pod in it. */
export interface BenchPod {
  readonly uid: string;
  readonly data: RetrievedPodData;
  /** As /status and /delete get it. */
  readonly pod: Pod;
}

/** Sizes of the Pods, in turns. */
const sizes = 20;

/** The Pod that a virtual kubelet sent, with its ConfigMaps, Secrets and all other fields, once more with a name and a size of its own. */
export function recordedPod(nth: number): BenchPod {
  const data = recordedBody('POST-create.json') as RetrievedPodData;
  const { spec } = data.pod;
  const requests = { cpu: '100m', memory: `${64 + (nth % sizes)}Mi` };
  const containers = spec.containers.map((one) => ({ ...one, resources: { requests } }));
  return named(`recorded-${nth}`, data, { ...spec, containers });
}

/** The same Pod with one container, which runs a script of bash on the machine itself: images are another matter. */
export function scriptPod(nth: number, script: string): BenchPod {
  const data = recordedBody('POST-create.json') as RetrievedPodData;
  const env = [{ name: 'HARVESTER_WORKER_ID', value: String(nth) }];
  const main: Container = {
    name: 'main',
    image: 'host',
    command: ['bash', '-c', script],
    env,
    resources: {},
  };
  return named(`script-${nth}`, { ...data, container: null }, { containers: [main], restartPolicy: 'Never' });
}

function named(name: string, data: RetrievedPodData, spec: Pod['spec']): BenchPod {
  const uid = randomUUID();
  const pod = { ...data.pod, metadata: { ...data.pod.metadata, name, uid }, spec };
  return { uid, pod, data: { ...data, pod } };
}

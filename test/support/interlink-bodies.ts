/** Bodies of /create as the virtual kubelet sends them through interLink, with the keys that Go always writes. */
import { randomUUID } from 'node:crypto';
import type { Container, Pod, RetrievedContainer } from '../../src/clients/interlink/wire.ts';

/** The parts of a Pod that a test cares for. */
export interface Asked {
  readonly containers: readonly Partial<Container>[];
  readonly initContainers?: readonly Partial<Container>[];
  /** Parts of the Pod's spec beside its containers. */
  readonly spec?: Partial<Pod['spec']>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Objects of the volumes. interLink sends a list for each container: every one gets these. */
  readonly objects?: Partial<RetrievedContainer>;
  readonly jobScript?: string;
}

/** @param image of each container that names none */
export function createBody(name: string, asked: Asked, image: string) {
  const { containers, initContainers = [], spec = {}, annotations = {}, objects = {}, jobScript } = asked;
  const whole = (one: Partial<Container>) => ({
    name: 'main',
    image,
    resources: {},
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
    ...one,
  });
  const [inits, mains] = [initContainers.map(whole), containers.map(whole)];
  const lists = { configMaps: null, projectedvolumemaps: null, secrets: null, emptyDirs: null, ...objects };
  return {
    pod: {
      metadata: {
        name,
        namespace: 'default',
        uid: randomUUID(),
        resourceVersion: '341475',
        creationTimestamp: '2026-11-21T08:40:27Z',
        labels: { app: name },
        annotations,
      },
      spec: {
        ...(inits.length > 0 && { initContainers: inits }),
        containers: mains,
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 30,
        dnsPolicy: 'ClusterFirst',
        serviceAccountName: 'default',
        nodeName: 'virtual-kubelet',
        securityContext: {},
        tolerations: [{ operator: 'Exists' }],
        enableServiceLinks: true,
        ...spec,
      },
      status: { phase: 'Pending', hostIP: '127.0.0.1', podIP: '127.0.0.1' },
    },
    container: [...inits, ...mains].map((one) => ({ name: one.name, ...lists })),
    jobConfig: {
      SingularityHubProxy: { server: '', master_token: '', cache_validity_seconds: 0 },
      ApptainerOptions: { executable: '', fakeroot: false, containall: false, fuseMode: '' },
      Volumes: { scratch_area: '', apptainer_cachedir: '', additional_directories_in_path: null },
    },
    ...(jobScript !== undefined && { jobScript }),
  };
}

export type CreateBody = ReturnType<typeof createBody>;

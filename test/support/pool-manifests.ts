import type { KubeObject } from './kubernetes.ts';

type Fields = Record<string, unknown>;

interface Probe extends Fields {
  periodSeconds?: number;
}

interface Container extends Fields {
  name: string;
  image: string;
  command?: string[];
  env?: { name: string; value?: string }[];
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
  resources?: unknown;
  startupProbe?: Probe;
  readinessProbe?: Probe;
}

interface PodSpec extends Fields {
  containers: Container[];
  volumes?: Fields[];
}

export interface Workload extends KubeObject {
  readonly spec: { template: { spec: PodSpec } };
}

/** What takes minutes elsewhere takes seconds in tests. */
const quick = [
  ...['NEGOTIATOR_INTERVAL = 2', 'NEGOTIATOR_MIN_INTERVAL = 1', 'NEGOTIATOR_CYCLE_DELAY = 1'],
  ...['SCHEDD_INTERVAL = 2', 'SCHEDD_MIN_INTERVAL = 1', 'NEGOTIATOR_UPDATE_INTERVAL = 5'],
  ...['UPDATE_INTERVAL = 3', 'MASTER_UPDATE_INTERVAL = 3', 'POLLING_INTERVAL = 1', 'CLAIM_WORKLIFE = 60'],
  ...['JOB_START_COUNT = 50', 'JOB_START_DELAY = 0', 'RUNBENCHMARKS = 0', 'MASTER_BACKOFF_CONSTANT = 1'],
  ...['JOB_DEFAULT_LEASE_DURATION = 60', 'ALIVE_INTERVAL = 10'],
  // A startd tries what its jobs might use before it joins, plugins in Python among it: 30 s on a busy machine.
  ...['FILETRANSFER_PLUGINS =', 'ENABLE_URL_TRANSFERS = False', 'JAVA =', 'DOCKER ='],
  // The negotiator comes by itself every 2 s. Where a schedd that calls it meets the negotiator's own first call, each waits 20 s for the
  // other's answer, and `condor_q` and `condor_submit` of these seconds fail.
  'SCHEDD_SEND_RESCHEDULE = False',
  // Otherwise a schedd that is killed may not know yet how often a job has begun.
  'SHADOW_LAZY_QUEUE_UPDATE = False',
  // So that a job that takes too much is held at once.
  ...['PERIODIC_EXPR_INTERVAL = 3', 'STARTER_UPDATE_INTERVAL = 3'],
];

/** Text of a configuration file. */
export const quickSettings = `${quick.join('\n')}\n`;

/** Settings of the pools of tests, which all their Pods read last. */
export const testSettings = 'test-settings';

/** Processor and memory of two machines at most: the node of the tests has two cores. */
const small = { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '512Mi' } };

/**
 * No DNS server answers on the node of the tests. At this address the kernel refuses a question at once; elsewhere each one
 * would wait for 5 to 15 s, and `condor_q` and `condor_submit` ask for the name of the schedd.
 */
export const noDns = { dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } };

/** The kubelet looks often, so that a Pod is ready when it is, and not up to 15 s later. */
function lookOften(container: Container): void {
  for (const probe of [container.startupProbe, container.readinessProbe])
    if (probe !== undefined) probe.periodSeconds = 1;
}

/** Makes a workload small and quick, with an image of the node. */
export function smallPod(spec: PodSpec, image: string): void {
  Object.assign(spec, noDns);
  // No name of a Service resolves in a Pod there: its address is in the environment.
  const elsewhere = ['CONDOR_HOST'];
  for (const container of spec.containers) {
    container.image = image;
    container.resources = small;
    lookOften(container);
    container.env = (container.env ?? []).filter(({ name }) => !elsewhere.includes(name));
    container.volumeMounts = [
      ...(container.volumeMounts ?? []),
      { name: testSettings, mountPath: '/etc/condor/more.d', readOnly: true },
    ];
  }
  spec.volumes = [...(spec.volumes ?? []), { name: testSettings, configMap: { name: testSettings } }];
}

/** The objects of a pool for the test node: small, quick, with a volume that is there. */
export function adjusted(
  objects: readonly KubeObject[],
  { image, volume }: { readonly image: string; readonly volume: string },
): readonly KubeObject[] {
  const settings = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: testSettings },
    data: { 'test.conf': quickSettings },
  };
  const changed = structuredClone(objects) as KubeObject[];
  for (const object of changed) {
    if (isWorkload(object)) smallPod(object.spec.template.spec, image);
    if (object.kind === 'PersistentVolumeClaim')
      Object.assign((object as unknown as { spec: Fields }).spec, {
        storageClassName: '',
        volumeName: volume,
      });
    // The address of the node leads to it, from outside too.
    if (object.kind === 'Service' && object.metadata.name === 'htcondor-central-manager')
      Object.assign((object as unknown as { spec: Fields }).spec, { type: 'NodePort' });
  }
  return [settings, ...changed];
}

function isWorkload(object: KubeObject): object is Workload {
  return object.kind === 'Deployment' || object.kind === 'StatefulSet';
}

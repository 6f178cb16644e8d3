import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { kubernetesSite } from '../support/kubernetes-site.ts';
import { proxyOf } from '../support/credentials.ts';
import { controlPlane, type KubeObject, type Namespace } from '../support/kubernetes.ts';
import { until } from '../support/until.ts';

const template = join(import.meta.dirname, '../fixtures/kubernetes/job_cern.yaml');
const claims = ['atlas', 'atlas-condb', 'atlas-nightlies', 'sft', 'grid'].map(
  (name) => `csi-cvmfs-${name}-pvc`,
);

const plugin = (kind: string, name: string, module: string) => ({
  name,
  module: `pandaharvester.harvester${kind}.${module}`,
});

/** The queue of Harvester's wiki page on Kubernetes: its keys and its layout; smaller numbers. */
const wiki = (namespace: string) => ({
  queueStatus: 'online',
  prodSourceLabel: 'managed',
  nQueueLimitWorker: 4,
  maxWorkers: 4,
  maxNewWorkersPerCycle: 30,
  mapType: 'NoJob',
  truePilot: true,
  preparator: plugin('preparator', 'DummyPreparator', 'dummy_preparator'),
  submitter: {
    ...plugin('submitter', 'K8sSubmitter', 'k8s_submitter'),
    x509UserProxy: 'x509up_u25606_production',
    cpuAdjustRatio: 90,
    memoryAdjustRatio: 100,
  },
  workerMaker: plugin('workermaker', 'SimpleWorkerMaker', 'simple_worker_maker'),
  messenger: {
    ...plugin('messenger', 'SharedFileMessenger', 'shared_file_messenger'),
    accessPoint: '/data/harvester_wdirs/${harvesterID}/${_workerID_3.2}/${_workerID_1.0}/${workerID}',
  },
  stager: plugin('stager', 'DummyStager', 'dummy_stager'),
  monitor: plugin('monitor', 'K8sMonitor', 'k8s_monitor'),
  sweeper: plugin('sweeper', 'K8sSweeper', 'k8s_sweeper'),
  common: { k8s_yaml_file: 'job_cern.yaml', k8s_config_file: 'kubeconfig', k8s_namespace: namespace },
});

/** CVMFS as its CSI driver gives it: claims that are bound. */
async function makeClaims(space: Namespace): Promise<void> {
  const { name: namespace, client } = space;
  for (const name of claims) {
    const spec = { accessModes: ['ReadOnlyMany'], storageClassName: '' };
    const volumeName = `${namespace}-${name}`;
    await client.create('/api/v1/persistentvolumes', {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: volumeName },
      spec: {
        ...spec,
        capacity: { storage: '1Gi' },
        hostPath: { path: '/cvmfs' },
        claimRef: { namespace, name },
      },
    });
    await client.create(space.core('persistentvolumeclaims'), {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name },
      spec: { ...spec, volumeName, resources: { requests: { storage: '1Gi' } } },
    });
  }
}

interface FilledPod extends KubeObject {
  readonly spec: {
    readonly containers: readonly {
      readonly env: readonly { name: string; value?: string; valueFrom?: object }[];
      readonly args: readonly string[];
    }[];
  };
}

describe("the queue of Harvester's wiki page, with its job_cern.yaml", () => {
  it('runs from end to end: as it is written, with `submitter.defaultDemand: fill`', async () => {
    const plane = await controlPlane();
    await using space = await plane.namespace('wiki');
    await makeClaims(space);
    const text = readFileSync(template, 'utf8');
    const settings = { submitter: { defaultDemand: 'fill' } };
    const site = kubernetesSite(
      plane,
      { queues: { CERN: wiki(space.name) }, settings },
      { 'job_cern.yaml': text },
    );
    writeFileSync(site.path('x509up_u25606_production'), proxyOf('/CN=Jane'), { mode: 0o600 });
    try {
      const checked = await site.run('check-config');
      expect(checked.stdout).to.match(/^CERN  ready$/m);
      expect(checked.status).to.equal(0);
      site.start();
      const running = await until('four run', async () => {
        const workers = await site.workers({ status: 'running' });
        return workers.length === 4 && workers;
      });
      const pods = await space.client.list<FilledPod>(space.core('pods'));
      expect(pods).to.have.length(4);
      const { env = [], args = [] } = pods[0]?.spec.containers[0] ?? {};
      const id = pods[0]?.metadata.labels?.['thresher/worker-id'];
      expect(args[1]).to.match(/^cd; wget .* \.\/pilots_starter\.py \|\| true$/);
      const values: Record<string, string | undefined> = Object.fromEntries(
        env.map(({ name, value }) => [name, value]),
      );
      expect(values).to.include({
        TMPDIR: '/root',
        PILOT_NOKILL: 'True',
        computingSite: 'CERN',
        workerID: id,
      });
      expect(env.find(({ name }) => name === 'proxyContent')?.valueFrom).to.have.property('secretKeyRef');
      expect(new Set(env.map(({ name }) => name)).size).to.equal(env.length);

      // What their pilots come to is said on their Pods: the template says nothing of it.
      const ends: Record<string, string> = Object.fromEntries(
        running.map(({ batchID }, index) => [batchID ?? '', index < 2 ? '0' : '3']),
      );
      for (const { metadata } of pods) {
        const annotations = { 'play/run': '0s', 'play/exit': ends[metadata.labels?.['job-name'] ?? ''] };
        await space.client.patch(space.core('pods', metadata.name), { metadata: { annotations } });
      }
      const ended = await until('all four have ended', async () => {
        const workers = await site.workers();
        const four = workers.filter(({ batchID }) => Object.hasOwn(ends, batchID ?? ''));
        return four.every(({ status }) => ['finished', 'failed'].includes(status)) && four;
      });
      expect(ended).to.have.length(4);
      for (const { batchID, status, nativeExitCode, errorCode, nodeID, startTime, endTime } of ended) {
        const good = ends[batchID ?? ''] === '0';
        expect({ status, nativeExitCode, errorCode }).to.deep.equal(
          good
            ? { status: 'finished', nativeExitCode: 0, errorCode: null }
            : { status: 'failed', nativeExitCode: 3, errorCode: 'exit-status' },
        );
        expect(nodeID).to.be.a('string').that.is.not.empty;
        expect(Date.parse(endTime ?? '')).to.be.at.least(Date.parse(startTime ?? ''));
      }
      await until(
        'others run in their place',
        async () => (await site.workers({ status: 'running' })).length === 4,
      );
    } finally {
      await site.clean();
      for (const name of claims)
        await space.client.delete(`/api/v1/persistentvolumes/${space.name}-${name}`, {});
    }
  });
});

import { expect } from 'chai';
import { container, type ControlPlane, type KubeObject, type Pod, realNode } from '../support/kubernetes.ts';
import { until } from '../support/until.ts';

const over = ({ status }: Pod) => ['Succeeded', 'Failed'].includes(status.phase);

const shell = (script: string, more: object = {}) => ({
  podSpec: { containers: [{ ...container('pilot'), command: ['sh', '-c', script], ...more }] },
});

describe('the real node of the test environment', function () {
  this.timeout(900_000);
  let plane: ControlPlane;

  before(async () => {
    plane = await realNode();
  });

  it('runs what a Pod says, keeps its log and tells its exit code', async () => {
    await using space = await plane.namespace();
    await space.client.create(space.core('secrets'), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'proxy' },
      stringData: { x509up: 'a proxy' },
    });
    const job = await space.createJob({
      podSpec: {
        volumes: [{ name: 'proxy', secret: { secretName: 'proxy' } }],
        containers: [
          {
            ...container('pilot'),
            command: ['sh', '-c', 'cat /proxy/x509up; echo; exit 3'],
            volumeMounts: [{ name: 'proxy', mountPath: '/proxy' }],
          },
        ],
      },
    });
    const { status, metadata, spec } = await space.untilPod(job, 'it is over', over);
    expect(spec.nodeName).to.equal('real-node-0');
    expect(status.phase).to.equal('Failed');
    expect(status.containerStatuses?.[0]?.state.terminated).to.include({ exitCode: 3, reason: 'Error' });
    const log = await space.client.raw('GET', space.core('pods', `${metadata.name}/log`));
    expect(log).to.deep.equal({ status: 200, text: 'a proxy\n' });
  });

  it('kills what takes more memory than it may', async () => {
    await using space = await plane.namespace();
    const limits = { resources: { limits: { memory: '32Mi' } } };
    const job = await space.createJob(shell('exec tail /dev/zero', limits));
    const { status } = await space.untilPod(job, 'it is over', over);
    expect(status.phase).to.equal('Failed');
    expect(status.containerStatuses?.[0]?.state.terminated).to.include({
      exitCode: 137,
      reason: 'OOMKilled',
    });
  });

  it('waits for an image that is nowhere', async () => {
    await using space = await plane.namespace();
    const job = await space.createJob(shell('true', { image: 'registry.invalid/none:1' }));
    await space.untilPod(job, 'the image is missed', ({ status }) =>
      ['ErrImagePull', 'ImagePullBackOff'].includes(
        status.containerStatuses?.[0]?.state.waiting?.reason ?? '',
      ),
    );
  });

  it('leads the address of a Service to its Pod, for Pods on the same node too', async () => {
    await using space = await plane.namespace();
    const service = await space.client.create<KubeObject & { spec: { clusterIP: string } }>(
      space.core('services'),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web' },
        spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
      },
    );
    const { podSpec: web } = shell('mkdir /w; echo here >/w/index.html; exec httpd -f -p 8080 -h /w');
    await space.createJob({ labels: { app: 'web' }, podSpec: { ...web, terminationGracePeriodSeconds: 1 } });
    // Linked statically, busybox's wget ends with a signal.
    const get = String.raw`printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 2 ${service.spec.clusterIP} 80`;
    const ask = `until ${get} | grep here; do sleep 0.2; done`;
    const job = await space.createJob(shell(ask));
    await space.untilPod(job, 'it got an answer', ({ status }) => status.phase === 'Succeeded');
  });

  it('ends a Pod that is deleted', async () => {
    await using space = await plane.namespace();
    const { podSpec } = shell('exec sleep 1000');
    const job = await space.createJob({ podSpec: { ...podSpec, terminationGracePeriodSeconds: 1 } });
    await space.untilPod(job, 'it runs', ({ status }) => status.phase === 'Running');
    await space.client.delete(space.jobs(job.metadata.name));
    await until('it is gone', async () => (await space.podsOf(job)).length === 0);
  });
});

import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { watch, type Watched } from '../../support/kubernetes-backend.ts';
import { KubernetesStub, marked } from '../../support/kubernetes-stub.ts';
import { recordingLog } from '../../support/samples.ts';
import { status } from '../../support/scripted-server.ts';
import { until } from '../../support/until.ts';

describe('the end of the log of a failed pilot', () => {
  let stub: KubernetesStub;
  let log: ReturnType<typeof recordingLog>;

  beforeEach(async () => {
    log = recordingLog();
    stub = await KubernetesStub.start({ log });
  });

  afterEach(() => stub.stop());

  /** A Pod whose pilot ended so long ago, s. */
  const failed = (workerId: number, ago: number) => {
    const finishedAt = new Date(Date.now() - ago * 1000).toISOString();
    const startedAt = new Date(Date.now() - (ago + 60) * 1000).toISOString();
    const terminated = { exitCode: 3, reason: 'Error', startedAt, finishedAt };
    const name = `factory-${workerId}-pod`;
    stub.pods.set(name, {
      metadata: { ...marked(workerId, { name }), creationTimestamp: startedAt },
      spec: { nodeName: 'wn1', containers: [{ name: 'pilot' }] },
      status: {
        phase: 'Failed',
        startTime: startedAt,
        containerStatuses: [{ name: 'pilot', state: { terminated } }],
      },
    });
  };
  const onLogs = (say: (response: ServerResponse, name: string) => void) => {
    stub.answer = (response, { resource, name }) => {
      if (resource !== 'pods/log') return false;
      say(response, name);
      return true;
    };
  };
  const shown = (watched: Watched, workerId: number) => watched.history.get(workerId)?.at(-1);

  it('is not read again when the daemon starts, where the failure is more than an hour old', async () => {
    onLogs((response) => response.end('the end'));
    failed(1, 7200);
    failed(2, 600);
    await using watched = watch(stub.plugin('monitor', { failedLogLines: 5 }));
    await until('both are shown', () => shown(watched, 1) && shown(watched, 2));
    expect(shown(watched, 1)?.detail).not.to.have.property('log');
    expect(shown(watched, 2)?.detail).to.include({ log: 'the end' });
    expect(
      stub.requests.filter(({ resource }) => resource === 'pods/log').map(({ name }) => name),
    ).to.deep.equal(['factory-2-pod']);
  });

  it('is read for four at once, and all get theirs in the end', async () => {
    let open = 0;
    let most = 0;
    onLogs((response, name) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open--;
        response.end(`log of ${name}`);
      }, 200);
    });
    for (let workerId = 1; workerId <= 20; workerId++) failed(workerId, 60);
    await using watched = watch(stub.plugin('monitor', { failedLogLines: 5 }));
    await until('all are shown', () => watched.history.size === 20);
    expect(most).to.equal(4);
    expect(shown(watched, 20)?.detail).to.include({ log: 'log of factory-20-pod' });
  });

  it('is the last 4 KiB, also of a single line as long as the log', async () => {
    onLogs((response) => response.end(`${'x'.repeat(100_000)}THE END`));
    failed(1, 60);
    await using watched = watch(stub.plugin('monitor', { failedLogLines: 5 }));
    const { detail } = await until('it is shown', () => shown(watched, 1));
    const kept = String(detail?.log);
    expect(kept).to.have.length(4096);
    expect(kept.endsWith('xTHE END')).to.equal(true);
  });

  it('is missing with one warning for all where the right to read it is missing, and the failures are shown', async () => {
    const message =
      'pods "x" is forbidden: User "t" cannot get resource "pods/log" in API group "" in the namespace "grid"';
    stub.answer = (response, { resource }, seen) => {
      if (resource !== 'pods/log') return false;
      status(403, 'Forbidden', message)(response, seen);
      return true;
    };
    for (let workerId = 1; workerId <= 6; workerId++) failed(workerId, 60);
    await using watched = watch(stub.plugin('monitor', { failedLogLines: 5 }));
    await until('all are shown', () => watched.history.size === 6);
    const warnings = log.lines.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ message, facts }) => [message, facts.code])).to.deep.equal([
      ['the log of a failed worker is not kept', 'kubernetes-forbidden'],
    ]);
    expect(shown(watched, 6)).to.include({ status: 'failed', exitCode: 3 });
  });
});

import { expect } from 'chai';
import { CondorTools } from '../../../src/clients/htcondor/tools.ts';
import type { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import { Scaling } from '../../../src/daemon/pool/scale/scaling.ts';
import { systemClock as clock } from '../../../src/util/clock.ts';
import { ScriptedStartds } from '../../support/scripted-startds.ts';

/** A Deployment that always has one Pod, which runs. */
function clusterWith(pod: string): KubernetesClient {
  const running = {
    metadata: { name: pod },
    spec: { nodeName: 'n' },
    status: { phase: 'Running', containerStatuses: [{ state: { running: {} } }] },
  };
  return {
    get: async () => ({
      metadata: { resourceVersion: '1' },
      spec: { replicas: 1, selector: { matchLabels: { app: 'worker' } } },
    }),
    list: async <T>(_path: string, _options: unknown, read: (object: unknown) => T) => ({
      items: [read(running)],
    }),
  } as unknown as KubernetesClient;
}

describe('thresher pool scale asks the pool', () => {
  const pod = 'htcondor-worker-1';
  let startds: ScriptedStartds;

  beforeEach(() => {
    startds = new ScriptedStartds();
  });

  /** Tries to have no worker, for one step. @returns why that is not possible now */
  async function scaleToNone(deployment = 'htcondor-worker'): Promise<{ code?: string; message: string }> {
    const environment = { ...process.env, PATH: `${startds.programs}:${process.env['PATH'] ?? ''}` };
    const tools = new CondorTools({ place: { pool: '127.0.0.1:1' }, clock, environment });
    const order = { namespace: 'pool', deployment, wanted: 0, timeout: 0 };
    const scaling = new Scaling(order, { cluster: clusterWith(pod), tools, clock, onStep: () => undefined });
    return scaling.run(new AbortController().signal).then(
      () => ({ message: 'it has none' }),
      (error: unknown) => error as { code?: string; message: string },
    );
  }

  it('whether each job may end by itself: a job without a retirement time of its own is never drained away', async () => {
    startds.set(pod, { busyCores: 1, jobRetirement: 0 });
    const { message } = await scaleToNone();
    expect(startds.drains(pod)).to.equal(false);
    expect(message).to.match(
      /htcondor-worker-1 is busy, and refuses to drain: a job there shows less than 86400 s of retirement left \(nice_user/,
    );
    startds.set(pod, { busyCores: 1 });
    expect((await scaleToNone()).message).to.match(/is busy, and is asked to drain/);
    expect(startds.drains(pod)).to.equal(true);
  });

  it('for some attributes of the slots of its own Pods, and for no whole ads', async () => {
    startds.set(pod);
    await scaleToNone();
    const [question] = startds.questions();
    expect(question).to.contain('-attributes Name,Machine,SlotType,State,Cpus,Draining');
    expect(question).to.contain('-constraint substr(Machine, 0, 16) =?= "htcondor-worker-"');
  });

  it('for the beginning of the name alone where Kubernetes may have cut it', async () => {
    await scaleToNone('w'.repeat(60));
    expect(startds.questions()[0]).to.contain(`substr(Machine, 0, 40) =?= "${'w'.repeat(40)}"`);
  });

  it('and takes what is no list of ads for an answer of HTCondor that cannot be read', async () => {
    startds.garbleCollector();
    const { code, message } = await scaleToNone();
    expect(code).to.equal('condor-answer');
    expect(message).to.match(/condor_status for .* wrote no list of ads: line 1 is no attribute of an ad/);
  });
});

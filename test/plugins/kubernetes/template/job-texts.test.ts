import { expect } from 'chai';
import type { FillOptions } from '../../../../src/plugins/kubernetes/template/environment.ts';
import { fill } from '../../../../src/plugins/kubernetes/template/fill.ts';
import { JobTexts } from '../../../../src/plugins/kubernetes/template/job-texts.ts';
import { K8sSubmitterConfig } from '../../../../src/plugins/kubernetes/schema.ts';
import {
  type KubernetesTemplate,
  parseTemplate,
} from '../../../../src/plugins/kubernetes/template/template.ts';
import { check } from '../../../../src/util/schema.ts';
import { workerName } from '../../../../src/worker/identity.ts';
import type { WorkerToStart } from '../../../../src/worker/worker.ts';
import { requirements, workerOf } from '../../../support/samples.ts';

const factoryId = 'thresher-0a1b2c3d';

function options(): FillOptions {
  const checked = check(K8sSubmitterConfig, { k8s_yaml_file: 'a.yaml', k8s_namespace: 'pilots' });
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return { factoryId, harvesterId: 'CERN_central', hostname: 'host1', config: checked.value };
}

function templateWith(pilot: object): KubernetesTemplate {
  const containers = [{ name: 'pilot', image: 'busybox', command: ['pilot'], ...pilot }];
  const spec = { template: { spec: { restartPolicy: 'Never', containers } } };
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { labels: { id: '${workerID}' } }, spec };
  const loaded = parseTemplate(JSON.stringify(job), 'a.yaml');
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.template;
}

/** A worker as `fill` of a queue asks for it: its id makes its name and its origin. */
function counted(workerId: number, changes: Partial<WorkerToStart> = {}): WorkerToStart {
  const name = workerName(factoryId, workerId);
  return { ...workerOf(workerId), name, origin: { kind: 'fill', uid: 'CERN', index: workerId }, ...changes };
}

/** The texts of these workers, and how many Jobs were filled for them. */
function textsOf(template: KubernetesTemplate, workers: readonly WorkerToStart[]) {
  let filled = 0;
  const texts = new JobTexts((worker) => {
    filled++;
    return fill(template, worker, options());
  }, factoryId);
  return { texts: workers.map((worker) => texts.of(worker)), filled };
}

function expectSameAsFilled(template: KubernetesTemplate, workers: readonly WorkerToStart[]): number {
  const { texts, filled } = textsOf(template, workers);
  expect(texts).to.deep.equal(workers.map((worker) => JSON.stringify(fill(template, worker, options()))));
  return filled;
}

const ids = [4_000_000_001, 4_000_000_002, 7, 12_345_678_901, 4_000_000_003, 10, 11, 12];

describe('texts of Jobs', () => {
  it('are what filling each Job gives, and of workers that differ by their id few are filled', () => {
    const workers = ids.map((id) => counted(id));
    expect(expectSameAsFilled(templateWith({ args: ['a', '${workerID}', '${jobName}'] }), workers)).to.equal(
      4,
    );
  });

  it('are those of each kind where attempts, needs and groups differ', () => {
    const kinds: readonly Partial<WorkerToStart>[] = [
      {},
      { attempt: 2 },
      { requirements: { ...requirements, nCore: 8, resourceType: 'MCORE' } },
      { groupId: 'together' },
      { configId: 9 },
      { computingSite: 'OTHER' },
    ];
    const workers = ids.flatMap((id, at) => kinds.map((kind, of) => counted(id * 10 + of + at, kind)));
    expect(expectSameAsFilled(templateWith({}), workers)).to.equal(kinds.length * 4);
  });

  it('are filled one by one where the template names single digits of the id', () => {
    const one = templateWith({ args: ['${_workerID_3.2}'] });
    expect(
      expectSameAsFilled(
        one,
        ids.map((id) => counted(id)),
      ),
    ).to.be.at.least(ids.length);
    const all = [...Array(15).keys()].reverse().join('.');
    expectSameAsFilled(
      templateWith({ args: [`\${_workerID_${all}}`] }),
      ids.map((id) => counted(id)),
    );
  });

  it('are right where the template holds the id of a stand-in', () => {
    const args = ['314159265358979', '502781837190416'];
    expectSameAsFilled(
      templateWith({ args }),
      ids.map((id) => counted(id)),
    );
  });

  it('are filled one by one for workers that differ by more than their id', () => {
    const workers = [
      ...ids.map((id) => counted(id, { payload: { env: { ID: String(id) } } })),
      ...ids.map((id) => counted(id, { accessPoint: `/data/${id}` })),
      ...ids.map((id, index) => counted(id, { origin: { kind: 'request', uid: `r${id}`, index } })),
      ...ids.map((id) => counted(id, { name: `other-${id}` })),
    ];
    expect(expectSameAsFilled(templateWith({}), workers)).to.equal(workers.length);
  });
});

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Pod } from '../../../src/clients/interlink/wire.ts';
import { readReport } from '../../../src/sources/interlink/pod/report.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import type { PlannedPod } from '../../../src/sources/interlink/planner.ts';
import { asOperatorSays, withDummy } from '../../../src/sources/interlink/operator.ts';

const pod: Pod = {
  metadata: { name: 'a', annotations: { x: 'y' } },
  spec: {
    containers: [
      { name: 'one', image: 'busybox', livenessProbe: { exec: { command: ['true'] } } },
      { name: 'two' },
    ],
  },
};
const usual = { imagePrefix: 'docker://', probes: true };

describe("the operator's part in a Pod of interLink", () => {
  it('is the prefix of its images, where the Pod has none of its own', () => {
    const root = 'slurm-job.vk.io/image-root';
    const rootOf = (one: Pod) =>
      asOperatorSays(one, { ...usual, imagePrefix: '/images/' }).pod.metadata.annotations?.[root];
    expect(rootOf(pod)).to.equal('/images/');
    expect(rootOf({ ...pod, metadata: { annotations: { [root]: 'oras://a/' } } })).to.equal('oras://a/');
  });

  it('can be that no probe is done, which is said of each container that has one', () => {
    expect(asOperatorSays(pod, usual).pod.spec).to.deep.equal(pod.spec);
    const { pod: left, left: said } = asOperatorSays(pod, { ...usual, probes: false });
    const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const;
    for (const container of left.spec.containers)
      expect(probes.map((probe) => container[probe])).to.deep.equal([null, null, null]);
    expect(left.spec.containers[0]).to.include({ name: 'one', image: 'busybox' });
    expect(said).to.deep.equal(['container one: its probes are not done, as the operator has it']);
  });

  it('can be a dummy of the same needs, without a file or a variable of the Pod', () => {
    const payload = {
      argv: ['./run.sh'],
      files: [{ name: 'secret', mode: 0o600, content: 'eA==' }],
      env: { A: 'b' },
      submit: { request_cpus: '2' },
    };
    const plan = { payload, requirements: { nCore: 2 }, containers: ['one', 'two'], warnings: [] };
    expect(withDummy(plan, pod, undefined)).to.equal(plan);
    const dummy = withDummy(plan, pod, 60);
    expect(dummy.payload).to.have.keys('argv', 'submit');
    expect(dummy.payload.submit).to.deep.equal({ request_cpus: '2' });
    expect(dummy.requirements).to.deep.equal({ nCore: 2 });
    expect(dummy.warnings[0]).to.include('no container runs');
  });

  it('as a dummy leaves all files of a job, and a report that each container has ended', () => {
    const directory = temporaryDirectory();
    const plan: PlannedPod = { payload: {}, requirements: {}, containers: ['one', 'two'], warnings: [] };
    const [program = '', ...args] = withDummy(plan, pod, 1).payload.argv ?? [];
    const env = { ...process.env, _CONDOR_SCRATCH_DIR: directory };
    execFileSync(program, args, { env });
    const logs = ['one', 'two'].flatMap((name) => [`${name}.log`, `${name}.log.times`]);
    expect(readdirSync(directory)).to.have.members([...logs, 'pod-status.json']);
    const report = readReport(readFileSync(join(directory, 'pod-status.json'), 'utf8'));
    expect(report).to.have.nested.include({
      'containers.two.state': 'terminated',
      'containers.two.exitCode': 0,
    });
  });
});

import { expect } from 'chai';
import { clustersOf } from '../../../../src/plugins/htcondor/submitting/clusters.ts';
import { describeBatch } from '../../../../src/plugins/htcondor/template/describe.ts';
import type { Payload } from '../../../../src/worker/payload.ts';
import type { WorkerToStart } from '../../../../src/worker/worker.ts';
import { batchOptions, submitterConfig, templateOf } from '../../../support/htcondor-batch.ts';
import { workerOf } from '../../../support/samples.ts';

const withSubmit = (workerId: number, submit: NonNullable<Payload['submit']>): WorkerToStart => ({
  ...workerOf(workerId),
  payload: { argv: ['true'], submit },
});
const idsOf = (workers: readonly WorkerToStart[]) =>
  clustersOf(workers).map((some) => some.map(({ workerId }) => workerId));

describe('the workers of one condor_submit', () => {
  it('may have sizes of their own', () => {
    const workers = [
      withSubmit(1, { request_cpus: '1', request_memory: '64', job_max_vacate_time: '45' }),
      withSubmit(2, { request_cpus: '8', request_memory: '2048', job_max_vacate_time: '75' }),
    ];
    expect(idsOf(workers)).to.deep.equal([[1, 2]]);
    const config = submitterConfig({ logDir: '/logs' });
    const { description, rejected } = describeBatch(
      templateOf('executable = /bin/true\nrequest_cpus = 1\n', undefined, config),
      workers,
      { ...batchOptions('/logs', { config }), bundleOf: () => '/state/payloads/thresher-payload.sh' },
    );
    expect([...rejected]).to.deep.equal([]);
    const lines = description.split('\n');
    const [, cpus = ''] = /^request_cpus = \$\((\w+)\)$/m.exec(description) ?? [];
    const columns = lines
      .find((line) => line.startsWith('queue '))
      ?.replace(/^queue | from.*/g, '')
      .split(',');
    const at = columns?.indexOf(cpus) ?? -1;
    expect(at, description).to.be.greaterThan(0);
    const rows = lines.filter((line) => /^[12],/.test(line)).map((line) => line.split(',')[at]);
    expect(rows).to.deep.equal(['1', '8']);
    expect(lines.filter((line) => line.startsWith('request_cpus'))).to.have.length(1);
  });

  it('have the same values of every other command, which HTCondor might refuse', () => {
    const workers = [
      withSubmit(1, { requirements: 'Memory > 5' }),
      withSubmit(2, { requirements: 'Memory > 6' }),
      withSubmit(3, { requirements: 'Memory > 5' }),
      withSubmit(4, { request_memory: '2 * 1024' }),
      withSubmit(5, { request_memory: '0' }),
      withSubmit(6, { request_memory: '64' }),
    ];
    expect(idsOf(workers)).to.deep.equal([[1, 3], [2], [4], [5], [6]]);
  });

  it('share no number that none of them may have: one of them alone is looked at', () => {
    const workers = ['1', '1000000000', '4096'].map((cpus, at) => withSubmit(at, { request_cpus: cpus }));
    expect(idsOf(workers)).to.deep.equal([[0, 2], [1]]);
  });

  it('hole 8: have the commands that they share looked at once, which may be long', () => {
    let looks = 0;
    const submit = new Proxy<NonNullable<Payload['submit']>>(
      { rank: 'Mips' },
      {
        ownKeys: (of) => {
          looks++;
          return Reflect.ownKeys(of);
        },
      },
    );
    const workers = Array.from({ length: 100 }, (_, at) => withSubmit(at + 1, submit));
    expect(
      idsOf([...workers, withSubmit(101, { rank: 'Mips' }), withSubmit(102, { rank: '1' })]),
    ).to.deep.equal([Array.from({ length: 101 }, (_, at) => at + 1), [102]]);
    expect(looks).to.equal(1);
  });
});

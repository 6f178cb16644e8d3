import { expect } from 'chai';
import { Matchmaker } from '../../../src/clients/htcondor/matchmaker.ts';
import type { CondorTools, Tool } from '../../../src/clients/htcondor/tools.ts';
import { rejection } from '../../support/kubernetes-client.ts';

const { signal } = new AbortController();

/** Matches two jobs with a slot, where HTCondor prints this. */
function matching(text: string) {
  const tools = {
    succeed: async ({ onOutput }: Tool) => {
      onOutput?.(text);
    },
  } as unknown as CondorTools;
  const jobs = [1, 2].map((cpus) => new Map([['requestcpus', `${cpus}`]]));
  return new Matchmaker(tools).withJobs(jobs, (laid) => laid.matches(new Map(), signal));
}

const row = (job: number, available: number) => `${job}.0  1/1  1  0  0  0  ${available} ana\n`;

describe('which jobs a slot would run', () => {
  it('is said in the order of the jobs, whatever that of the rows', async () => {
    expect(await matching(row(1, 1) + row(2, 0))).to.deep.equal([true, false]);
    expect(await matching(row(2, 0) + row(1, 1))).to.deep.equal([true, false]);
  });

  it('has no answer where HTCondor says nothing of one of them, or more than one thing', async () => {
    for (const text of ['', row(1, 1), row(2, 1), row(1, 1) + row(2, 1) + row(2, 0)])
      expect(await rejection(matching(text)), text).to.have.property('code', 'condor-answer');
  });
});

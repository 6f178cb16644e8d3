import { expect } from 'chai';
import type { PodFacts } from '../../../../src/sources/interlink/pods/facts.ts';
import { waitAfter, waitText } from '../../../../src/sources/interlink/pods/wait.ts';

const at = Date.UTC(2026, 10, 20, 3, 12);
const facts = (change: Partial<PodFacts>): PodFacts => ({
  workerId: 1,
  status: 'submitted',
  native: 'idle',
  exitCode: null,
  message: null,
  batchId: '12.0',
  startTime: null,
  endTime: null,
  ...change,
});
const placement = 'htcondor:LOCAL';

describe('the wait of a job of a Pod', () => {
  it('begins with its submission, or when it lost its machine, and goes on until it has one', () => {
    const known = { submitTime: at - 5, placement };
    const first = waitAfter(undefined, facts({}), known, at);
    expect(first).to.deep.equal({ since: at - 5, placement });
    expect(waitAfter(first, facts({}), { submitTime: null, placement: null }, at + 9)).to.deep.equal(first);
    expect(waitAfter(undefined, facts({ startTime: 3 }), known, at)?.since).to.equal(at);
  });

  const none: readonly (readonly [string, Partial<PodFacts>])[] = [
    ['runs', { status: 'running', native: 'running' }],
    ['is suspended on its machine', { status: 'idle', native: 'suspended' }],
    ['is held', { native: 'held' }],
    ['has ended', { status: 'finished' }],
    ['has no id yet', { status: 'pending', batchId: null }],
  ];
  for (const [what, change] of none)
    it(`is over when the job ${what}`, () => {
      const before = { since: at, placement };
      expect(waitAfter(before, facts(change), { submitTime: at, placement }, at)).to.equal(undefined);
    });

  const texts = [
    { placement: 'htcondor:LOCAL', says: '; "condor_q -better-analyze 12.0" says why' },
    {
      placement: 'htcondor:ap1.example.org,cm.example.org:9618',
      says: '; "condor_q -pool cm.example.org:9618 -name ap1.example.org -better-analyze 12.0" says why',
    },
    {
      placement: 'htcondor:ap1.example.org,None',
      says: '; "condor_q -name ap1.example.org -better-analyze 12.0" says why',
    },
    { placement: 'local:/work', says: '' },
    { placement: null, says: '' },
  ];
  for (const { placement, says } of texts)
    it(`is told with what says more: ${placement ?? 'no place'}`, () => {
      const text = waitText({ since: at, placement }, '12.0');
      expect(text).to.equal(`job 12.0 waits for a machine since 2026-11-20T03:12:00Z${says}`);
    });
});

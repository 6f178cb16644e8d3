import { expect } from 'chai';
import type { Standing } from '../../../src/plugins/kubernetes/fence.ts';
import { keptFor, longestWay } from '../../../src/plugins/kubernetes/late-creation.ts';

const createdAt = 1_000_000;
const handle = { batchID: 'factory-1', uid: 'u' };
const job: Standing = { kind: 'worker', handle, createdAt };
const fence: Standing = { kind: 'fence', attempt: 1, uid: 'u', createdAt };

describe('what stands under the name of an ended worker on Kubernetes', () => {
  const cases: [what: string, standing: Standing, attempt: number, stays: boolean][] = [
    ['a fence of a first attempt', fence, 1, true],
    ['a fence of a later attempt', fence, 3, true],
    ['the Job of a first attempt', job, 1, false],
    ['the Job of a later attempt', job, 2, true],
    ["somebody else's Job", { kind: 'stranger' }, 2, false],
    ['nothing', { kind: 'nothing' }, 2, false],
    ['a fence without a time', { ...fence, createdAt: NaN }, 1, false],
  ];
  for (const [what, standing, attempt, stays] of cases) {
    const kept = (now: number) => keptFor({ workerId: 1, attempt }, standing, now)?.code;
    it(`${stays ? 'stays' : 'goes at once'}: ${what}`, () => {
      expect(kept(createdAt)).to.equal(stays ? 'late-creation' : undefined);
      expect(kept(createdAt + longestWay - 1)).to.equal(stays ? 'late-creation' : undefined);
      expect(kept(createdAt + longestWay)).to.equal(undefined);
    });
  }

  it('says for how long it stays', () => {
    expect(keptFor({ workerId: 7, attempt: 1 }, fence, createdAt + 500)?.message).to.equal(
      'an earlier creation of worker 7 may still reach the API server: its fence stays for another 120 s',
    );
  });
});

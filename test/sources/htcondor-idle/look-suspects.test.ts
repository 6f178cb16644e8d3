import { expect } from 'chai';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { type Suspect, Suspects } from '../../../src/sources/htcondor-idle/look/suspects.ts';
import { rejection } from '../../support/kubernetes-client.ts';

const jobsOf = (owner: string, count: number): Suspect[] =>
  Array.from({ length: count }, (_, id) => ({ owner, key: `${owner}${id}` }));
const keysOf = (jobs: readonly Suspect[]) => jobs.map(({ key }) => key).toSorted();

type Code = 'condor-failed' | 'condor-timeout' | 'condor-unreachable';
const failure = (code: Code) => new HTCondorError({ code, message: 'crashed', maybeDone: false });

interface Condor {
  /** Whether a question about this one fails. */
  isBad: (job: Suspect) => boolean;
  readonly code?: Code;
  /** ms that this one adds to what a question takes. */
  takes?: (job: Suspect) => number;
  isDown?: boolean;
}

/** HTCondor, by a clock that its answers move on. */
function suspectsOn(condor: Condor) {
  const { code = 'condor-timeout' } = condor;
  let now = 0;
  const asked: Suspect[][] = [];
  const suspects = new Suspects(() => now, ['condor-failed', 'condor-timeout']);
  const question = {
    ask: async (some: readonly Suspect[]) => {
      asked.push([...some]);
      for (const job of some) now += condor.takes?.(job) ?? 0;
      if (!some.some(condor.isBad)) return some;
      if (code === 'condor-timeout') now += 15_000;
      throw failure(code);
    },
    harmless: () => (condor.isDown === true ? Promise.reject(failure('condor-failed')) : Promise.resolve()),
  };
  const look = async (jobs: readonly Suspect[]) => {
    asked.length = 0;
    suspects.forgive();
    const begun = now;
    const { answers, failed } = await suspects.ask(jobs, question);
    return { answers, failed, took: (now - begun) / 1000 };
  };
  return { look, asked, costOf: (owner: string) => suspects.costOf(owner) / 1000 };
}

describe('jobs about which HTCondor cannot be asked', () => {
  const honest = [...jobsOf('ana', 300), ...jobsOf('ben', 100)];

  it('are found, and all others answered', async () => {
    for (const code of ['condor-timeout', 'condor-failed'] as const)
      for (const bad of [['eve7'], ['eve0', 'eve1', 'eve63'], ['ana12', 'eve7'], ['ana0', 'ben0', 'eve0']]) {
        const { look, asked } = suspectsOn({ isBad: ({ key }) => bad.includes(key), code });
        const jobs = [...jobsOf('eve', 64), ...honest];
        const { answers, failed } = await look(jobs);
        expect(keysOf(failed)).to.deep.equal(bad);
        expect(answers).to.have.length(jobs.length - bad.length);
        expect(asked.length).to.be.below(60);
      }
  });

  it('are found where there are few, without a question too much', async () => {
    for (const [count, questions] of [
      // A command may have failed for another reason: it fails twice.
      [1, 2],
      [2, 3],
      [9, 11],
    ] as const) {
      const { look, asked } = suspectsOn({ isBad: ({ key }) => key === 'eve0' });
      expect(keysOf((await look(jobsOf('eve', count))).failed)).to.deep.equal(['eve0']);
      expect(asked.length, `of ${count}`).to.equal(questions);
    }
  });

  it('hole 8: hide nobody else, however many one user has, and take a bounded time', async () => {
    const { look, asked } = suspectsOn({ isBad: ({ owner }) => owner === 'eve' });
    let evil = jobsOf('eve', 400);
    const first = await look([...evil, ...honest]);
    expect(first.answers).to.have.length(400);
    expect(first.took).to.be.within(100, 330);
    let took = 0;
    for (let at = 0; at < 100; at++) {
      evil = evil.map(({ owner, key }) => ({ owner, key: `${key} anew` }));
      const later = await look([...evil, ...honest]);
      expect(later.answers).to.have.length(400);
      // She is asked about apart from then on.
      expect(asked[0]).to.deep.equal(honest);
      took += later.took;
    }
    expect(took / 100, 's in each look').to.be.within(5, 15);
  });

  it('hide no other job of their owner for long, however many there are', async () => {
    const jobs = jobsOf('ana', 1000);
    const bad = new Set(jobs.filter((_, at) => at % 50 === 7).map(({ key }) => key));
    const { look } = suspectsOn({ isBad: ({ key }) => bad.has(key) });
    const answered = new Set<string>();
    const failed = new Set<string>();
    let looks = 0;
    for (; looks < 200 && answered.size + failed.size < jobs.length; looks++) {
      const found = await look(jobs.filter(({ key }) => !answered.has(key) && !failed.has(key)));
      for (const { key } of found.answers) answered.add(key);
      for (const { key } of found.failed) failed.add(key);
      if (looks === 0) expect(answered.size, 'although each 50th has no end').to.be.above(200);
    }
    expect([answered.size, failed]).to.deep.equal([980, bad]);
    expect(looks).to.be.below(60);
  });

  it('are asked about together again once their owner has no such job any more', async () => {
    const condor: Condor = { isBad: ({ owner }) => owner === 'eve' };
    const { look, asked } = suspectsOn(condor);
    const evil = jobsOf('eve', 100);
    await look([...evil, ...honest]);
    condor.isBad = () => false;
    for (let at = 0; at < 5; at++) await look(honest);
    expect((await look([...evil, ...honest])).answers, 'soon').to.have.length(500);
    for (let at = 0; at < 40; at++) await look([]);
    await look([...evil, ...honest]);
    expect(asked).to.deep.equal([[...evil, ...honest]]);
  });

  it('are suspect as well where they only take long', async () => {
    const condor: Condor = { isBad: () => false, takes: ({ key }) => (key === 'eve0' ? 40_000 : 0) };
    const { look } = suspectsOn(condor);
    let took = 0;
    for (let at = 0; at < 100; at++) {
      const found = await look([...jobsOf('eve', 100), ...honest]);
      expect(found.answers.length).to.be.least(400);
      took += found.took;
    }
    expect(took / 100, 's in each look').to.be.below(25);
  });

  it('cost their owner what was asked about them in vain, and nobody else anything', async () => {
    const one = suspectsOn({ isBad: ({ key }) => key === 'eve0' });
    await one.look([...honest, ...jobsOf('eve', 1)]);
    expect(['eve', 'ana', 'ben'].map(one.costOf), 'with all, apart, and again').to.deep.equal([45, 0, 0]);
    const two = suspectsOn({ isBad: ({ key }) => key === 'eve0' || key === 'mal0' });
    await two.look([...honest, ...jobsOf('eve', 1), ...jobsOf('mal', 1)]);
    expect(['eve', 'mal', 'ana', 'ben'].map(two.costOf)).to.deep.equal([37.5, 37.5, 0, 0]);
  });

  it('cost something also where HTCondor crashes at once', async () => {
    const { look, asked } = suspectsOn({ isBad: ({ owner }) => owner === 'eve', code: 'condor-failed' });
    await look([...jobsOf('eve', 5000), ...honest]);
    expect(asked.length).to.be.below(310);
  });

  it('are those alone with which it fails twice', async () => {
    const condor: Condor = { isBad: ({ owner }) => owner === 'eve' };
    const { look, asked } = suspectsOn(condor);
    await look([...honest, ...jobsOf('eve', 1)]);
    condor.isBad = ({ key }) => key === 'unlucky' && asked.length < 2;
    const unlucky = { owner: 'eve', key: 'unlucky' };
    expect(await look([unlucky])).to.deep.include({ answers: [unlucky], failed: [] });
  });

  it('take long by 2 s together, and by 0.5 s apart, unless the machine does for anything', async () => {
    for (const [seconds, isApart] of [
      [1.9, false],
      [2.1, true],
    ] as const) {
      const { look, asked } = suspectsOn({
        isBad: () => false,
        takes: ({ key }) => (key === 'eve0' ? seconds * 1000 : 0),
      });
      const jobs = [...honest, ...jobsOf('eve', 1)];
      await look(jobs);
      await look(jobs);
      expect(asked.length, `${seconds} s`).to.equal(isApart ? 3 : 1);
    }
    const condor: Condor = { isBad: ({ owner }) => owner === 'eve' };
    const { look, costOf } = suspectsOn(condor);
    await look(jobsOf('eve', 1));
    condor.isBad = () => false;
    condor.takes = () => 600;
    const before = costOf('eve');
    await look(jobsOf('eve', 1));
    expect(costOf('eve')).to.be.closeTo(before - 10 + 0.6, 0.01);
    // HTCondor says nothing about anything: who knows why it took long.
    condor.isDown = true;
    condor.takes = () => 40_000;
    await look(jobsOf('eve', 1));
    expect(costOf('eve')).to.be.closeTo(before - 20 + 0.6, 0.01);
  });

  it('are none where HTCondor does not answer about something harmless, also if it did a moment before', async () => {
    const condor: Condor = { isBad: () => true, isDown: true, code: 'condor-failed' };
    const { look, asked } = suspectsOn(condor);
    expect(await rejection(look(honest))).to.have.property('code', 'condor-failed');
    condor.isDown = false;
    condor.isBad = () => {
      if (asked.length === 3) condor.isDown = true;
      return true;
    };
    expect(await rejection(look(honest))).to.have.property('code', 'condor-failed');
    expect(asked).to.have.length(3);
  });

  it('are not searched where the failure is of no job', async () => {
    const { look, asked } = suspectsOn({ isBad: () => true, code: 'condor-unreachable' });
    expect(await rejection(look(honest))).to.have.property('code', 'condor-unreachable');
    expect(asked).to.have.length(1);
  });
});

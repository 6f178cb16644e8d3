import { expect } from 'chai';
import type { AdText } from '../../../src/clients/htcondor/ad-text.ts';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import type { Matchmaker } from '../../../src/clients/htcondor/matchmaker.ts';
import { sign, type Signed } from '../../../src/sources/htcondor-idle/look/answers.ts';
import { type Matched, MatchTable } from '../../../src/sources/htcondor-idle/look/matching.ts';
import { rejection } from '../../support/kubernetes-client.ts';

const { signal } = new AbortController();

const signed = (attributes: Readonly<Record<string, string>>) => sign(new Map(Object.entries(attributes)));
const jobOf = (owner: string, number: string): Matched => ({ ...signed({ owner, number }), owner });
const jobsOf = (owner: string, count: number) =>
  Array.from({ length: count }, (_, at) => jobOf(owner, `${at}`));
const templates = ['a', 'b'].map((template) => signed({ template }));
const slots = Array.from({ length: 20 }, (_, at) => signed({ slot: `${at}` }));

type Pairs = (job: AdText, slot: AdText) => boolean;
const ofNobody: Pairs = () => false;
const isOf = (owner: string) => (job: AdText) => job.get('owner') === owner;
const isSlot = (slot: AdText, at: number) => slot.get('slot') === `${at}`;

const failure = (code: 'condor-timeout' | 'condor-answer') =>
  new HTCondorError({ code, message: 'no end', maybeDone: false });

/** HTCondor's matchmaking, in which some pairs have no end, and some get no answer; all others match. */
function tableWith(pairs: {
  endless: Pairs;
  silent?: Pairs;
  takes?: number;
  isBroken?: boolean;
  takesLong?: (job: AdText) => boolean;
  slotsOf?: (look: number) => readonly Signed[];
}) {
  let now = 0;
  let atOnce = 0;
  let looks = 0;
  const none = { endless: 0, laidOut: 0, all: 0, endlessAtOnce: 0, templates: 0 };
  const asked = { ...none };
  const matchmaker = {
    withJobs: async (ads: readonly AdText[], use: (laid: object) => unknown) => {
      asked.laidOut++;
      return use({
        matches: async (slot: AdText) => {
          asked.all++;
          if (slot.has('template')) asked.templates++;
          now += pairs.takes ?? 0;
          if (pairs.takesLong !== undefined && ads.some(pairs.takesLong)) now += 2200;
          if (pairs.isBroken === true) {
            now += 15_000;
            throw failure('condor-timeout');
          }
          if (ads.some((job) => pairs.endless(job, slot))) {
            asked.endless++;
            asked.endlessAtOnce = Math.max(asked.endlessAtOnce, ++atOnce);
            await new Promise((resolve) => setImmediate(resolve));
            if (--atOnce === 0) now += 15_000 + 10 * ads.length;
            throw failure('condor-timeout');
          }
          if (ads.some((job) => pairs.silent?.(job, slot) === true)) throw failure('condor-answer');
          return ads.map(() => true);
        },
      });
    },
  } as unknown as Matchmaker;
  const table = new MatchTable(matchmaker, () => now);
  const fill = async (jobs: readonly Matched[], stop = signal) => {
    Object.assign(asked, none);
    const begun = now;
    const pool = pairs.slotsOf?.(looks++) ?? slots;
    const { failures, hopeless, unasked } = await table.fill(jobs, templates, pool, stop);
    return {
      failures: [...failures].map(([slot, { code }]) => ({ slot, code })),
      hopeless: jobs.filter(({ signature }) => hopeless.has(signature)),
      unasked: jobs.filter(({ signature }) => unasked.has(signature)),
      took: (now - begun) / 1000,
    };
  };
  /** Jobs that all of these slots are known to take. */
  const taken = (jobs: readonly Matched[], of = [...templates, ...slots]) =>
    jobs.filter((job) => of.every((slot) => table.answer(slot.signature, job.signature) === true)).length;
  return { fill, taken, asked, answer: table.answer.bind(table) };
}

describe('which jobs match which slots', () => {
  const honest = [...jobsOf('ana', 200), ...jobsOf('ben', 100)];

  it('is asked once for each slot with all new jobs, which share one file', async () => {
    const { fill, taken, asked } = tableWith({ endless: ofNobody });
    expect(await fill(honest)).to.deep.equal({ failures: [], hopeless: [], unasked: [], took: 0 });
    expect([taken(honest), asked.all]).to.deep.equal([300, 22]);
    expect(asked.laidOut, 'the first slot of each kind is asked alone').to.equal(4);
    await fill(honest);
    expect(asked.all).to.equal(0);
  });

  it('hole 8: is known of all others where one job has no end, and for that job HTCondor is not asked again for a while', async () => {
    const bad = honest[77];
    const { fill, taken, asked } = tableWith({ endless: (job) => job === bad?.ad });
    for (let look = 0; look < 30; look++) {
      const { failures, hopeless, took } = await fill(honest);
      expect(failures).to.deep.equal([]);
      expect(hopeless, 'it is of no use on the slots either').to.deep.equal([bad]);
      expect(taken(honest)).to.equal(299);
      if (look % 20 > 0) expect(asked.all).to.equal(0);
      else expect(took).to.be.below(180);
    }
  });

  it('hole 8: is known of all others where no job of somebody can be matched, within a bounded time', async () => {
    const evil = jobsOf('eve', 500);
    const { fill, taken } = tableWith({ endless: isOf('eve') });
    const { failures, hopeless, unasked, took } = await fill([...evil, ...honest]);
    expect(failures).to.deep.equal([]);
    expect([taken(honest), hopeless.length + unasked.length]).to.deep.equal([300, 500]);
    expect(took).to.be.below(360);
    let later = 0;
    for (let look = 1; look < 100; look++) {
      const found = await fill([...evil, jobOf('eve', `of look ${look}`), ...honest]);
      expect(found.failures).to.deep.equal([]);
      later += found.took;
    }
    expect(later / 99, 's in each look').to.be.below(20);
  });

  it('hole 8: is known of all others where each job of somebody has no end with another slot', async () => {
    const evil = jobsOf('eve', 500);
    const endless: Pairs = (job, slot) =>
      isOf('eve')(job) && Number(job.get('number')) % 20 === Number(slot.get('slot'));
    const { fill, taken, asked } = tableWith({ endless });
    const { failures, hopeless, took } = await fill([...evil, ...honest]);
    expect([failures.length < 3, hopeless]).to.deep.equal([true, []]);
    expect([taken(honest), taken(evil, templates)]).to.deep.equal([300, 500]);
    expect(took).to.be.below(500);
    expect(asked.endlessAtOnce, 'the search goes on with one question at a time').to.be.most(4);
    // Nobody waits for answers about pairs that have none.
    for (let look = 0, jobs = honest; look < 20; look++) {
      jobs = [...jobs, jobOf('ana', `of look ${look}`)];
      await fill([...evil, ...jobs]);
      if (look > 10) expect(taken(jobs)).to.equal(jobs.length);
    }
  });

  it('hole 8: is known for all other slots where some have no end with the only user, or with some of his jobs', async () => {
    const isBad = (slot: AdText) => isSlot(slot, 0) || isSlot(slot, 7) || isSlot(slot, 8);
    const good = [...templates, ...slots.filter(({ ad }) => !isBad(ad))];
    for (const endless of [
      ((_, slot) => isBad(slot)) satisfies Pairs,
      ((job, slot) => isOf('ana')(job) && isBad(slot)) satisfies Pairs,
      ((job, slot) => Number(job.get('number')) % 2 === 1 && isBad(slot)) satisfies Pairs,
    ]) {
      const { fill, taken } = tableWith({ endless });
      let jobs = jobsOf('ana', 200);
      let took = 0;
      for (let look = 0; look < 60; look++) {
        jobs = [...jobs, jobOf('ana', look % 2 === 0 ? `of look ${look}` : `1000${look}`)];
        const found = await fill(jobs);
        expect([found.hopeless, found.unasked]).to.deep.equal([[], []]);
        expect(taken(jobs, templates)).to.equal(jobs.length);
        if (look > 1) expect(taken(jobs, good), `in look ${look}`).to.equal(jobs.length);
        took += found.took;
      }
      expect(took / 60, 's in each look').to.be.below(45);
    }
  });

  it('hole 8: is unknown, and not no, where somebody has cost too much', async () => {
    const [evil, plain] = [jobsOf('eve', 500), jobOf('eve', 'plain')];
    const { fill, answer } = tableWith({
      endless: (job, slot) => isOf('eve')(job) && job !== plain.ad && slot.has('slot'),
    });
    const last = slots.at(-1)?.signature ?? '';
    await fill([...evil, ...honest]);
    expect(evil.map(({ signature }) => answer(last, signature))).to.include(undefined);
    expect(honest.map(({ signature }) => answer(last, signature))).not.to.include(undefined);
  });

  it('hole 8: is known of what two users want alike, whatever else one of them has', async () => {
    const evil = jobsOf('eve', 500);
    const bad = jobOf('eve', 'new');
    for (const isFirst of [true, false]) {
      const { fill, taken } = tableWith({ endless: isOf('eve') });
      await fill(evil);
      const shared = jobOf('ana', 'shared');
      const hers = { ...shared, owner: 'eve' };
      const found = await fill([...evil, bad, ...(isFirst ? [hers, shared] : [shared, hers])]);
      expect(found.unasked).not.to.deep.include(shared);
      expect(taken([shared])).to.equal(1);
    }
  });

  it('hole 8: is asked of templates as before where only slots of the pool have no end with the jobs of somebody', async () => {
    const { fill, taken, asked } = tableWith({
      endless: (job, slot) => isOf('eve')(job) && slot.has('slot'),
    });
    for (let look = 0; look < 5; look++) {
      const added = ['ana', 'eve'].map((owner) => jobOf(owner, `of look ${look}`));
      const jobs = [...honest, ...jobsOf('eve', 500), ...added];
      expect(await fill(jobs)).to.deep.include({ hopeless: [], unasked: [] });
      expect([taken(jobs, templates), asked.templates]).to.deep.equal([802, 2]);
    }
  });

  it('hole 8: is known for good slots beside many that have no end, also if those change in each look', async () => {
    const good = Array.from({ length: 48 }, (_, at) => signed({ slot: `good ${at}` }));
    const endless: Pairs = (_, slot) => slot.has('load');
    for (const [bad, isChanging, least] of [
      [5, true, 60],
      [12, true, 40],
      [12, false, 55],
    ] as const) {
      const slotsOf = (look: number) => [
        ...Array.from({ length: bad }, (_, at) =>
          signed({ slot: `bad ${at}`, load: isChanging ? `${look}` : '' }),
        ),
        ...good,
      ];
      const { fill, taken } = tableWith({ endless, slotsOf });
      let jobs = jobsOf('ana', 50);
      let took = 0;
      let known = 0;
      for (let look = 0; look < 60; look++) {
        jobs = [...jobs, jobOf('ana', `of look ${look}`)];
        took += (await fill(jobs)).took;
        expect(taken(jobs, templates)).to.equal(jobs.length);
        if (taken(jobs, good) === jobs.length) known++;
      }
      expect(known, `looks after which all was known beside ${bad}`).to.be.least(least);
      expect(took / 60, 's in each look').to.be.below(130);
    }
  });

  it('is asked of all slots at once again, also of one that had no end, once it has', async () => {
    const pairs: { endless: Pairs } = { endless: (_, slot) => isSlot(slot, 7) };
    const { fill, taken, asked } = tableWith(pairs);
    let jobs = jobsOf('ana', 50);
    for (let look = 0; look < 5; look++) {
      jobs = [...jobs, jobOf('ana', `of look ${look}`)];
      await fill(jobs);
      expect(asked.endless, 'it is asked about after the others').to.be.below(5);
    }
    pairs.endless = ofNobody;
    for (let look = 0; look < 10; look++) await fill(jobs);
    expect(taken(jobs)).to.equal(jobs.length);
    for (let look = 0; look < 20; look++) await fill(jobs);
    await fill([...jobs, jobOf('ana', 'new')]);
    expect(asked.laidOut, 'for the first slot of each kind, and for the others together').to.equal(4);
  });

  it('hole 8: is asked by one question at a time as soon as one of four fails', async () => {
    const endless: Pairs = (job, slot) => job.get('owner') === `user${slot.get('slot') ?? ''}`;
    const { fill, asked } = tableWith({ endless });
    const jobs = slots.map((_, at) => jobOf(`user${at}`, 'bad'));
    await fill(jobs);
    // Four together; for each slot with all, apart, and again, but for the last, where all is only his.
    expect([asked.endless, asked.endlessAtOnce]).to.deep.equal([4 + 3 * 20 - 1, 4]);
  });

  it('hole 8: is known for all other slots, and of all jobs, where a slot or a template has no end with the jobs of many', async () => {
    const owners = Array.from({ length: 20 }, (_, at) => `user${at}`);
    for (const bad of ['0', 'a']) {
      const isBad = (slot: AdText) => (slot.get('slot') ?? slot.get('template')) === bad;
      const good = [...templates, ...slots].filter(({ ad }) => !isBad(ad));
      const { fill, taken } = tableWith({ endless: (job, slot) => job.has('number') && isBad(slot) });
      let jobs: Matched[] = [];
      let took = 0;
      for (let look = 0; look < 30; look++) {
        jobs = [...jobs, ...owners.map((owner) => jobOf(owner, `${look}`))];
        const found = await fill(jobs);
        expect([found.hopeless, found.unasked, found.failures.length]).to.deep.equal([[], [], 1]);
        expect(taken(jobs, good)).to.equal(jobs.length);
        took += found.took;
      }
      expect(took / 30, 's in each look').to.be.below(25);
    }
  });

  it('hole 8: takes a question of each user more where one user has jobs that take long, and no more than that', async () => {
    const pairs = { endless: ofNobody, takesLong: isOf('eve') };
    const { fill, asked, taken } = tableWith(pairs);
    let jobs = [...honest, ...Array.from({ length: 20 }, (_, at) => jobOf(`user${at}`, '0'))];
    let took = 0;
    for (let look = 0; look < 30; look++) {
      jobs = [...jobs, jobOf('ana', `of look ${look}`)];
      took += (await fill([...jobs, jobOf('eve', `of look ${look}`)])).took;
      expect(taken(jobs)).to.equal(jobs.length);
      expect(asked.all, `in look ${look}`).to.be.below(110);
    }
    expect(took / 30, 's in each look').to.be.below(35);
  });

  it('is unknown for a slot that has no end with any job, and no where only a pair has none', async () => {
    const [good, bad] = [jobOf('ana', 'good'), jobOf('ana', 'bad')];
    const { fill, answer } = tableWith({
      endless: (job, slot) => isSlot(slot, 7) || (job === bad.ad && isSlot(slot, 8)),
    });
    const { failures } = await fill([good, bad]);
    const [seven, eight] = [slots[7]?.signature ?? '', slots[8]?.signature ?? ''];
    expect(failures).to.deep.equal([{ slot: seven, code: 'condor-timeout' }]);
    expect([answer(seven, good.signature), answer(eight, good.signature)]).to.deep.equal([undefined, true]);
    expect(answer(eight, bad.signature)).to.equal(false);
  });

  it('is not asked of slot after slot where HTCondor answers nothing at all, and known as soon as it does', async () => {
    const pairs = { endless: ofNobody, isBroken: true };
    const { fill, taken } = tableWith(pairs);
    for (let look = 0; look < 10; look++) {
      const { failures, hopeless, unasked, took } = await fill(honest);
      expect([failures.length, hopeless, unasked]).to.deep.equal([22, [], []]);
      expect(took).to.be.below(60);
    }
    pairs.isBroken = false;
    expect(await fill(honest)).to.deep.equal({ failures: [], hopeless: [], unasked: [], took: 0 });
    expect(taken(honest)).to.equal(300);
  });

  it('is held against nobody where the machine takes long for anything', async () => {
    const pairs = { endless: ofNobody, takes: 6000 };
    const { fill, taken, asked } = tableWith(pairs);
    expect(await fill(honest)).to.deep.include({ failures: [], hopeless: [], unasked: [] });
    expect([taken(honest), asked.all]).to.deep.equal([300, 44]);
    pairs.takes = 0;
    const more = [...honest, jobOf('ana', 'new'), jobOf('ben', 'new')];
    await fill(more);
    expect([taken(more), asked.all]).to.deep.equal([302, 22]);
  });

  it('is not known of a job about which HTCondor says nothing: it is left out', async () => {
    const silent = honest[5];
    const { fill, taken } = tableWith({ endless: ofNobody, silent: (job) => job === silent?.ad });
    expect((await fill(honest)).hopeless).to.deep.equal([silent]);
    expect(taken(honest)).to.equal(299);
  });

  it('is asked again of a job that was left out, after 20 looks, and at once of one with which a single command failed', async () => {
    const late = jobOf('ana', 'late');
    const pairs: { endless: Pairs } = { endless: (job) => job === late.ad };
    const { fill, taken, asked } = tableWith(pairs);
    await fill([late]);
    pairs.endless = ofNobody;
    for (let look = 1; look < 20; look++) expect((await fill([late])).hopeless).to.deep.equal([late]);
    expect((await fill([late])).hopeless).to.deep.equal([]);
    expect(taken([late])).to.equal(1);
    const unlucky = jobOf('ana', 'unlucky');
    pairs.endless = (job) => job === unlucky.ad && asked.all === 1;
    expect(await fill([unlucky])).to.deep.include({ failures: [], hopeless: [], unasked: [] });
    expect(taken([unlucky])).to.equal(1);
  });

  it('is asked no further once nobody waits for it', async () => {
    const stop = new AbortController();
    const { fill, asked } = tableWith({
      endless: () => {
        if (asked.all === 3) stop.abort();
        return asked.all >= 3;
      },
    });
    expect(await rejection(fill(honest, stop.signal))).to.have.property('name', 'AbortError');
    expect(asked.all).to.be.below(9);
  });
});

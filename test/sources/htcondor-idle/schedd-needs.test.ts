import { expect } from 'chai';
import type { AdText } from '../../../src/clients/htcondor/ad-text.ts';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import type { Matchmaker } from '../../../src/clients/htcondor/matchmaker.ts';
import { adsAmong, ScheddNeeds } from '../../../src/sources/htcondor-idle/look/schedd-needs.ts';
import { rejection } from '../../support/kubernetes-client.ts';

const signal = new AbortController().signal;
const jobs = Array.from({ length: 100 }, (_, index) => ({ cluster: index + 1, proc: 0 }));

describe('the ads of waiting jobs', () => {
  /** A schedd that fails where one of these jobs is asked for. */
  const scheddWith = (
    bad: readonly number[],
    code: 'condor-failed' | 'condor-unreachable' = 'condor-failed',
  ) => {
    let asked = 0;
    return {
      get asked() {
        return asked;
      },
      queueAds: async (constraint: string): Promise<AdText[]> => {
        asked++;
        const named = [...new Set(constraint.match(/(?<=ClusterId == )\d+/g))].map(Number);
        if (named.some((id) => bad.includes(id)))
          throw new HTCondorError({ code, message: 'larger than 1MB limit', maybeDone: false });
        return named.map((id) => new Map([['clusterid', String(id)]]));
      },
    };
  };
  const idsOf = (ads: readonly AdText[]) =>
    ads.map((ad) => Number(ad.get('clusterid'))).sort((a, b) => a - b);

  it('hole 8: are read without those that HTCondor cannot send', async () => {
    for (const bad of [[7], [7, 8], [7, 61, 62, 63, 64]]) {
      const schedd = scheddWith(bad);
      expect(idsOf((await adsAmong(schedd, jobs, signal)).answers)).to.deep.equal(
        jobs.map(({ cluster }) => cluster).filter((id) => !bad.includes(id)),
      );
      expect(schedd.asked).to.be.below(50);
    }
    const [first] = jobs;
    expect(await adsAmong(scheddWith([1]), jobs.slice(0, 1), signal)).to.deep.equal({
      answers: [],
      failed: [first],
    });
  });

  it('are unknown where all fail, or the schedd does not answer', async () => {
    const all = jobs.map(({ cluster }) => cluster);
    expect(await rejection(adsAmong(scheddWith(all), jobs, signal))).to.have.property(
      'code',
      'condor-failed',
    );
    const away = scheddWith([1], 'condor-unreachable');
    expect(await rejection(adsAmong(away, jobs, signal))).to.have.property('code', 'condor-unreachable');
    expect(away.asked).to.equal(1);
  });
});

describe('what waiting jobs ask for', () => {
  const question = { startedAt: 1, cycle: 1000, foreign: new Set(['requestfoo']) };
  const usual = [
    ['requestcpus', '8'],
    ['requestmemory', '16000'],
    ['requestfoo', '2'],
  ] as const;

  /** Jobs of a schedd, each a group of its own. @param fails whether HTCondor fails where it evaluates this one */
  function needsOf(
    ads: readonly (readonly (readonly [string, string])[])[],
    fails: (ad: AdText) => boolean = () => false,
  ): ScheddNeeds {
    const all = ads.map((more, at) => new Map([['clusterid', `${at + 1}`], ['procid', '0'], ...more]));
    const client = {
      queueLines: async (_: string, __: unknown, onJob: (values: readonly string[]) => void) => {
        for (const at of all.keys()) onJob([`${at + 1}`, '0', `${at + 1}`, '900', 'undefined', '"a"']);
      },
      queueAds: async () => all,
    };
    const matchmaker = {
      withJobs: (some: readonly AdText[], use: (laid: object) => unknown) =>
        use({
          values: async (names: readonly string[]) => {
            if (some.some(fails))
              throw new HTCondorError({ code: 'condor-failed', message: 'crashed', maybeDone: false });
            return some.map((ad) => names.map((name) => ad.get(name.toLowerCase()) ?? 'undefined'));
          },
        }),
    };
    return new ScheddNeeds(client, matchmaker as unknown as Matchmaker);
  }
  const askedOf = async (needs: ScheddNeeds) => {
    const { needs: found } = await needs.look(question, signal);
    return found.map(({ representative: { job, asked } }) =>
      [job.cluster, ...['cpus', 'memory', 'foo'].map((name) => asked.get(name))].join(' '),
    );
  };

  it('hole 8: is the same whatever names the attributes of another job have', async () => {
    const evil = Array.from({ length: 500 }, (_, at) => [`request${'a'.repeat(at + 1)}`, '1'] as const);
    expect(await askedOf(needsOf([evil, usual, usual]))).to.deep.equal([
      '1   ',
      '2 8 16000 2',
      '3 8 16000 2',
    ]);
  });

  it('hole 8: is known of all but the job that HTCondor cannot evaluate', async () => {
    const jobs = Array.from({ length: 50 }, () => usual);
    for (const bad of [['7'], ['7', '8', '30']]) {
      let evaluations = 0;
      const needs = needsOf(jobs, (ad) => {
        evaluations++;
        return bad.includes(ad.get('clusterid') ?? '');
      });
      for (let look = 0; look < 50; look++) {
        const found = await askedOf(needs);
        expect(found).to.have.length(50 - bad.length);
        expect(new Set(found.map((one) => one.replace(/^\d+/, '')))).to.deep.equal(new Set([' 8 16000 2']));
        if (look % 20 > 0) expect(evaluations, 'they are left out for a while').to.equal(0);
        evaluations = 0;
      }
    }
  });
});

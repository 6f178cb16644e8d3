import { expect } from 'chai';
import type { AdText } from '../../../src/clients/htcondor/ad-text.ts';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { adsAmong } from '../../../src/sources/htcondor-idle/look/schedd-needs.ts';
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
      expect(idsOf(await adsAmong(schedd, jobs, signal))).to.deep.equal(
        jobs.map(({ cluster }) => cluster).filter((id) => !bad.includes(id)),
      );
      expect(schedd.asked).to.be.below(50);
    }
    expect(await adsAmong(scheddWith([1]), jobs.slice(0, 1), signal)).to.deep.equal([]);
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

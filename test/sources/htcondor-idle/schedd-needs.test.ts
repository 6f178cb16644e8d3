import { expect } from 'chai';
import type { AdText } from '../../../src/clients/htcondor/ad-text.ts';
import { HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import type { Matchmaker } from '../../../src/clients/htcondor/matchmaker.ts';
import { ScheddNeeds } from '../../../src/sources/htcondor-idle/look/schedd-needs.ts';
import { rejection } from '../../support/kubernetes-client.ts';

const signal = new AbortController().signal;
const question = { startedAt: 1, cycle: 1000, foreign: new Set(['requestfoo']), ofSlots: new Set<string>() };

type Attributes = readonly (readonly [string, string])[];
type Fails = (ad: AdText) => boolean;

const failure = (code: 'condor-failed' | 'condor-timeout' | 'condor-unreachable') =>
  new HTCondorError({ code, message: 'larger than 1MB limit', maybeDone: false });

interface Schedd {
  /** Jobs, each a group of its own, from 1, or of the group in its `autoclusterid`. `owner` among the attributes; default "ana". */
  readonly ads: readonly Attributes[];
  /** Whether HTCondor fails where it sends this one. */
  readonly unsent?: Fails;
  /** Whether HTCondor fails where it evaluates this one. */
  readonly unevaluated?: Fails;
}

const numberOf = (ad: AdText) => Number(ad.get('clusterid'));

/** The waiting jobs of a schedd, and how often it was asked for ads and values. */
function scheddWith({ ads, unsent = () => false, unevaluated = () => false }: Schedd) {
  const all: AdText[] = [];
  const add = (more: Attributes) =>
    all.push(new Map([['clusterid', `${all.length + 1}`], ['procid', '0'], ['owner', '"ana"'], ...more]));
  ads.forEach(add);
  /** That were asked for. */
  const names: string[] = [];
  const asked = { ads: 0, values: 0 };
  let now = 0;
  const client = {
    queueLines: async (
      _: string,
      attributes: readonly string[],
      onJob: (values: readonly string[]) => void,
    ) => {
      names.push(...attributes);
      for (const ad of all) {
        const id = ad.get('clusterid') ?? '';
        const fixed = [id, '0', ad.get('autoclusterid') ?? id, '900', 'undefined', ad.get('owner') ?? ''];
        onJob([...fixed, ...attributes.slice(6).map((name) => ad.get(name.toLowerCase()) ?? 'undefined')]);
      }
    },
    queueAds: async <T>(constraint: string, _: AbortSignal, read: (ad: AdText) => T | undefined) => {
      asked.ads++;
      const named = new Set(Array.from(constraint.match(/(?<=ClusterId == )\d+/g) ?? [], Number));
      const sent = all.filter((ad) => named.has(numberOf(ad)));
      if (sent.some(unsent)) throw failure('condor-failed');
      return sent.flatMap((ad) => read(ad) ?? []);
    },
  };
  const matchmaker = {
    withJobs: (some: readonly AdText[], use: (laid: object) => unknown) =>
      use({
        values: async <T>(fields: readonly string[], read: (values: readonly string[]) => T) => {
          names.push(...fields);
          asked.values++;
          if (some.some(unevaluated)) {
            now += 15_000;
            throw failure('condor-timeout');
          }
          return some.map((ad) => read(fields.map((name) => ad.get(name.toLowerCase()) ?? 'undefined')));
        },
      }),
  } as unknown as Matchmaker;
  const needs = new ScheddNeeds(client, matchmaker, () => now);
  const look = (more: Partial<typeof question> = {}) => needs.look({ ...question, ...more }, signal);
  return { asked, client, look, add, names, needs };
}

const idsOf = ({ needs }: Awaited<ReturnType<ScheddNeeds['look']>>) =>
  needs.map(({ representative }) => representative.job.cluster);

describe('the ads of waiting jobs', () => {
  const jobs = Array.from({ length: 100 }, (): Attributes => []);

  it('hole 8: are read without those that HTCondor cannot send', async () => {
    for (const bad of [[7], [7, 8], [7, 61, 62, 63, 64]]) {
      const { look, asked } = scheddWith({ ads: jobs, unsent: (ad) => bad.includes(numberOf(ad)) });
      const found = await look();
      expect(idsOf(found)).to.deep.equal(jobs.map((_, at) => at + 1).filter((id) => !bad.includes(id)));
      expect(found.leftOut).to.equal(bad.length);
      expect(asked.ads).to.be.below(50);
    }
  });

  it('are unknown where the schedd sends nothing at all, or does not answer', async () => {
    const two = jobs.map((_, at): Attributes => [['owner', at % 2 === 0 ? '"ana"' : '"ben"']]);
    const failing = scheddWith({ ads: two });
    failing.client.queueAds = () => Promise.reject(failure('condor-failed'));
    expect(await rejection(failing.look())).to.have.property('code', 'condor-failed');
    const away = scheddWith({ ads: two });
    let asked = 0;
    away.client.queueAds = () => {
      asked++;
      return Promise.reject(failure('condor-unreachable'));
    };
    expect(await rejection(away.look())).to.have.property('code', 'condor-unreachable');
    expect(asked).to.equal(1);
  });

  it('are kept without long values on which nothing rests, and asked for again once a slot looks for them', async () => {
    const text = (length: number) => `"${'a'.repeat(length)}"`;
    const { look, asked } = scheddWith({
      ads: [
        [
          ['requirements', 'Long && true'],
          ['long', text(20_000)],
          ['concurrencylimits', 'Limits'],
          ['limits', text(300)],
          ['environment', text(1_000_000)],
          ['autoclusterattrs', text(300)],
        ],
        [['environment', text(9000)]],
        [
          ['wantsite', 'sites'],
          ['sites', text(20_000)],
        ],
      ],
    });
    const names = ({ needs }: Awaited<ReturnType<typeof look>>) =>
      needs.map(({ representative }) => [...representative.ad.keys()].slice(3));
    const short = ['requirements', 'long', 'concurrencylimits', 'limits', 'autoclusterattrs'];
    const kept = [short, ['environment'], ['wantsite']];
    expect(names(await look())).to.deep.equal(kept);
    const { ads } = asked;
    expect(names(await look())).to.deep.equal(kept);
    expect(asked.ads).to.equal(ads);
    // Also through another attribute. Of megabytes on which a match rests there is no whole ad.
    const found = await look({ ofSlots: new Set(['environment', 'wantsite']) });
    expect([names(found), found.leftOut]).to.deep.equal([[['environment'], ['wantsite', 'sites']], 1]);
    expect(asked.ads).to.equal(ads + 1);
  });

  it('hole 8: of one owner fill no memory', async () => {
    const requirements = `"${'a'.repeat(45_000)}"`;
    const evil = Array.from({ length: 2500 }, (): Attributes => [
      ['owner', '"eve"'],
      ['requirements', requirements],
    ]);
    const { look } = scheddWith({ ads: [...evil, ...jobs] });
    const { needs, leftOut } = await look();
    const kept = needs.reduce((sum, { representative }) => sum + representative.length, 0);
    expect(kept).to.be.below(101_000_000);
    expect(needs.filter(({ group }) => group.owners.has('ana'))).to.have.length(100);
    expect(leftOut).to.be.above(100);
  });
});

describe('what waiting jobs ask for', () => {
  const usual: Attributes = [
    ['requestcpus', '8'],
    ['requestmemory', '16000'],
    ['requestfoo', '2'],
  ];
  const askedOf = async ({ look }: ReturnType<typeof scheddWith>) => {
    const { needs } = await look();
    return needs.map(({ representative: { job, asked } }) =>
      [job.cluster, ...['cpus', 'memory', 'foo'].map((name) => asked.get(name))].join(' '),
    );
  };

  it('hole 8: is the same whatever names the attributes of another job have', async () => {
    const evil = Array.from({ length: 250 }, (_, at) => [`request${'a'.repeat(at + 1)}`, '1'] as const);
    expect(await askedOf(scheddWith({ ads: [evil, usual, usual] }))).to.deep.equal([
      '1   ',
      '2 8 16000 2',
      '3 8 16000 2',
    ]);
  });

  it('hole 8: is known of all but the job that HTCondor cannot evaluate', async () => {
    const jobs = Array.from({ length: 50 }, () => usual);
    for (const bad of [[7], [7, 8, 30]]) {
      const schedd = scheddWith({ ads: jobs, unevaluated: (ad) => bad.includes(numberOf(ad)) });
      for (let look = 0; look < 50; look++) {
        const found = await askedOf(schedd);
        expect(found).to.have.length(50 - bad.length);
        expect(new Set(found.map((one) => one.replace(/^\d+/, '')))).to.deep.equal(new Set([' 8 16000 2']));
        if (look % 20 > 0) expect(schedd.asked.values, 'they are left out for a while').to.equal(0);
        schedd.asked.values = 0;
      }
    }
  });

  it('hole 8: is known of a group in which a job cannot be evaluated, be it of another owner or not', async () => {
    const inGroup: Attributes = [...usual, ['autoclusterid', '7']];
    for (const owner of ['"eve"', '"ana"']) {
      // Each bad job is the last of its group.
      const ads: Attributes[] = [inGroup, inGroup, [...inGroup, ['owner', owner], ['isbad', 'true']]];
      const { look } = scheddWith({ ads, unevaluated: (ad) => ad.has('isbad') });
      const counts: unknown[] = [];
      for (let at = 0; at < 30; at++) counts.push((await look()).needs.map(({ group }) => group.count));
      expect(counts.slice(1)).to.deep.equal(Array.from({ length: 29 }, () => [3]));
    }
  });

  it('hole 8: is known of a group although somebody adds a bad job to it again and again', async () => {
    for (const how of [
      ['isbad', 'true'],
      ['requirements', `"${'a'.repeat(60_000)}"`],
    ] as const) {
      const group = [...usual, ['autoclusterid', '7']] as const;
      const ads: Attributes[] = [[...group, ['owner', '"eve"']], group, group];
      const { look, add } = scheddWith({ ads, unevaluated: (ad) => ad.has('isbad') });
      for (let at = 0; at < 30; at++) {
        add([...group, ['owner', '"eve"'], how]);
        const { needs } = await look();
        if (at > 0) expect(needs.map(({ representative }) => representative.owner)).to.deep.equal(['ana']);
      }
    }
  });

  it('hole 8: is told by another job once no slot can be matched with one, and by another owner once his jobs have cost too much', async () => {
    const group: Attributes = [...usual, ['autoclusterid', '7']];
    const ads: Attributes[] = [[...group, ['owner', '"eve"']], group, [...group, ['owner', '"eve"']]];
    for (const [how, jobs] of [
      ['leaveOut', [3, 2]],
      ['passOver', [3, 2]],
    ] as const) {
      const { look, needs } = scheddWith({ ads });
      const standing: number[] = [];
      for (let at = 0; at < 25; at++) {
        const found = await look();
        standing.push(...idsOf(found));
        const [one] = found.needs;
        if (at === 0 && one !== undefined) needs[how](one.representative, one.group.owners.keys());
      }
      expect([...new Set(standing)], how).to.deep.equal(jobs);
      expect(standing, how).to.have.length(25);
    }
    // Where there is no other owner, his jobs go on to stand for the group.
    const own = scheddWith({ ads: [group, group] });
    await own.look();
    own.asked.ads = 0;
    for (let at = 0; at < 3; at++) {
      const [one] = (await own.look()).needs;
      expect(one?.group.count).to.equal(2);
      if (one !== undefined) own.needs.passOver(one.representative, ['ana']);
      expect(own.asked.ads, 'it is not read again').to.equal(0);
    }
    const single = scheddWith({ ads: [group] });
    const counts: number[] = [];
    for (let at = 0; at < 25; at++) {
      const { needs, leftOut } = await single.look();
      counts.push(leftOut);
      const [one] = needs;
      if (at === 0 && one !== undefined) single.needs.leaveOut(one.representative);
    }
    expect(counts).to.deep.equal([0, ...Array.from({ length: 19 }, () => 1), ...[0, 0, 0, 0, 0]]);
  });

  it('hole 8: is known of all jobs whatever names somebody gives to attributes', async () => {
    const loose: Attributes = [['autoclusterid', 'undefined']];
    const names = [`'a b'`, 'x'.repeat(22_000), ...Array.from({ length: 200 }, (_, at) => `name${at}`)];
    const evil = names.map((name): Attributes => [
      ...loose,
      ['owner', '"eve"'],
      ['requirements', `${name} =?= 1`],
      [`request${name.replaceAll(/\W/g, '')}`, '1'],
    ]);
    const own: Attributes = [...loose, ['requirements', 'mine =?= 1'], ['requestmine', '3']];
    const { look, names: asked } = scheddWith({ ads: [...evil, own, own] });
    await look();
    const { needs } = await look();
    const mine = needs.filter(({ group }) => group.owners.has('ana'));
    expect(
      mine.map(({ group, representative }) => [group.count, representative.asked.get('mine')]),
    ).to.deep.equal([[2, 3]]);
    expect(asked.filter((name) => !/^[A-Za-z_]\w{0,99}$/.test(name))).to.deep.equal([]);
    expect(asked).to.include('mine');
  });

  it('is unknown of a job with limits of hundreds of names, and of no other', async () => {
    const limits = `"${Array.from({ length: 300 }, (_, at) => `n${at}`).join(',')}"`;
    const { look } = scheddWith({ ads: [[['concurrencylimits', limits]], usual] });
    expect(idsOf(await look())).to.deep.equal([2]);
  });

  it('hole 8: is known of all others where no job of somebody can be evaluated', async () => {
    const evil = Array.from({ length: 300 }, (): Attributes => [['owner', '"eve"']]);
    const isEvil = (ad: AdText) => ad.get('owner') === '"eve"';
    const schedd = scheddWith({ ads: [...evil, usual, usual], unevaluated: isEvil });
    expect(await askedOf(schedd)).to.deep.equal(['301 8 16000 2', '302 8 16000 2']);
    // That about all, twenty about her, each with one about something harmless; and that about the others, twice, because their key has changed.
    expect(schedd.asked.values).to.equal(44);
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import type { FamilyPart, ThrottledQueue, ThrottleFacts } from '../../../src/plugins/contracts/index.ts';
import { SimpleThrottler, TinyThrottler } from '../../../src/plugins/throttlers/rules/index.ts';
import { combine, RuleThrottler } from '../../../src/plugins/throttlers/rules/rules.ts';
import type {
  FamilyRule,
  MissedRule,
  TinyThrottlerConfig,
} from '../../../src/plugins/throttlers/rules/schema.ts';
import { check } from '../../../src/util/schema.ts';
import { pluginContext } from '../../support/plugin-context.ts';

const queue: ThrottledQueue = {
  name: 'CERN/MCORE',
  computingSite: 'CERN',
  siteFamily: 'SWISS',
  computingElements: ['ce1', 'ce2'],
  coresPerWorker: 8,
};

/** Facts from tables: what is not in them is 0. */
function factsOf(
  missed: Record<string, number>,
  family: Partial<Record<FamilyPart, { workers: number; cores: number }>> = {},
): ThrottleFacts & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    missed: async (level, value, window) => {
      asked.push(`${level} ${value} ${window / 60_000} min`);
      return missed[`${level} ${value}`] ?? 0;
    },
    family: async (part) => family[part] ?? { workers: 0, cores: 0 },
  };
}

const config = (rules: Partial<TinyThrottlerConfig>): TinyThrottlerConfig => ({
  logicType: 'OR',
  rulesForMissed: [],
  rulesForSiteFamilySubmitted: [],
  rulesForSiteFamilyRunning: [],
  rulesForSiteFamilySubmittedRunning: [],
  ...rules,
});
const throttled = (atMost: number, message: string) => ({ atMost, reason: { code: 'throttled', message } });

describe('what several rules come to', () => {
  const stops = { atMost: 0, why: 'a' };
  const leaves3 = { atMost: 3, why: 'b' };
  const fine = { atMost: Infinity, why: 'c' };
  const nothing = undefined;
  for (const [logic, verdicts, expected] of [
    ['OR', [], nothing],
    ['AND', [], nothing],
    ['OR', [fine], nothing],
    ['AND', [fine], nothing],
    ['OR', [fine, fine], nothing],
    ['OR', [stops, fine], throttled(0, 'a')],
    ['OR', [fine, leaves3], throttled(3, 'b')],
    ['OR', [leaves3, stops], throttled(0, 'a')],
    ['OR', [stops, { ...stops, why: 'd' }], throttled(0, 'a, and d')],
    ['AND', [stops, fine], nothing],
    ['AND', [stops, leaves3], throttled(3, 'a, and b')],
    ['AND', [stops, stops], throttled(0, 'a, and a')],
  ] as const) {
    it(`by ${logic} of ${verdicts.map(({ atMost }) => String(atMost)).join(', ') || 'none'} is ${String(expected?.atMost)}`, () => {
      expect(combine(logic, verdicts)).to.deep.equal(expected);
    });
  }
});

describe('a throttler on missed workers', () => {
  const rule = (level: MissedRule['level'], maxMissed: number, timeWindow = 30): MissedRule => ({
    level,
    maxMissed,
    timeWindow,
  });

  for (const [level, value] of [
    ['site', 'CERN'],
    ['pq', 'CERN/MCORE'],
  ] as const) {
    it(`holds the queue back when more than maxMissed were missed of its ${level}`, async () => {
      const throttler = new RuleThrottler(config({ rulesForMissed: [rule(level, 5)] }));
      expect(await throttler.judge(queue, factsOf({ [`${level} ${value}`]: 5 }))).to.equal(undefined);
      expect(await throttler.judge(queue, factsOf({ [`${level} ${value}`]: 6 }))).to.deep.equal(
        throttled(0, `6 workers of ${level} ${value} were missed in 30 min (rulesForMissed: maxMissed 5)`),
      );
    });
  }

  it('looks at each computing element, by OR at the worst and by AND at the best', async () => {
    const rules = { rulesForMissed: [rule('ce', 2)] };
    const one = factsOf({ 'ce ce1': 1, 'ce ce2': 3 });
    expect(await new RuleThrottler(config(rules)).judge(queue, one)).to.deep.equal(
      throttled(0, '3 workers of ce ce2 were missed in 30 min (rulesForMissed: maxMissed 2)'),
    );
    const and = new RuleThrottler(config({ ...rules, logicType: 'AND' }));
    expect(await and.judge(queue, one)).to.equal(undefined);
    expect((await and.judge(queue, factsOf({ 'ce ce1': 3, 'ce ce2': 3 })))?.atMost).to.equal(0);
  });

  for (const logicType of ['OR', 'AND'] as const) {
    it(`is none where its rules are about computing elements and the queue has none (${logicType})`, async () => {
      const facts = factsOf({});
      const throttler = new RuleThrottler(config({ logicType, rulesForMissed: [rule('ce', 0)] }));
      expect(await throttler.judge({ ...queue, computingElements: [] }, facts)).to.equal(undefined);
      expect(facts.asked).to.deep.equal([]);
    });
  }

  it('asks for its own time', async () => {
    const rulesForMissed = [rule('pq', 1, 10), rule('site', 1, 0.5), rule('pq', 9, 60)];
    const throttler = new RuleThrottler(config({ rulesForMissed }));
    expect(throttler.countsFamily).to.equal(false);
    const facts = factsOf({});
    await throttler.judge(queue, facts);
    expect(facts.asked).to.deep.equal(['pq CERN/MCORE 10 min', 'site CERN 0.5 min', 'pq CERN/MCORE 60 min']);
  });
});

describe('a throttler on a family of sites', () => {
  const workers = (maxWorkers: number): FamilyRule => ({ level: 'workers', maxWorkers });
  const cores = (maxCores: number): FamilyRule => ({ level: 'cores', maxCores });
  const family = {
    queued: { workers: 3, cores: 24 },
    running: { workers: 5, cores: 40 },
    alive: { workers: 8, cores: 64 },
  };

  for (const [option, rule, atMost, message] of [
    [
      'rulesForSiteFamilySubmitted',
      workers(10),
      7,
      '3 workers of siteFamily SWISS are queued (rulesForSiteFamilySubmitted: maxWorkers 10)',
    ],
    [
      'rulesForSiteFamilyRunning',
      workers(5),
      0,
      '5 workers of siteFamily SWISS are running (rulesForSiteFamilyRunning: maxWorkers 5)',
    ],
    [
      'rulesForSiteFamilySubmittedRunning',
      workers(9),
      1,
      '8 workers of siteFamily SWISS are alive (rulesForSiteFamilySubmittedRunning: maxWorkers 9)',
    ],
    [
      'rulesForSiteFamilySubmitted',
      cores(40),
      2,
      '24 cores of siteFamily SWISS are queued (rulesForSiteFamilySubmitted: maxCores 40)',
    ],
    [
      'rulesForSiteFamilyRunning',
      cores(47),
      0,
      '40 cores of siteFamily SWISS are running (rulesForSiteFamilyRunning: maxCores 47)',
    ],
    [
      'rulesForSiteFamilySubmittedRunning',
      cores(10),
      0,
      '64 cores of siteFamily SWISS are alive (rulesForSiteFamilySubmittedRunning: maxCores 10)',
    ],
  ] as const) {
    it(`leaves ${atMost}: ${message}`, async () => {
      const throttler = new RuleThrottler(config({ [option]: [rule] }));
      expect(throttler.countsFamily).to.equal(true);
      expect(await throttler.judge(queue, factsOf({}, family))).to.deep.equal(throttled(atMost, message));
    });
  }

  it('never lets new workers exceed a maximum of queued or living ones, and gives all the room there is', () => {
    const some = fc.nat({ max: 50 });
    return fc.assert(
      fc.asyncProperty(some, some, fc.integer({ min: 1, max: 16 }), async (used, most, each) => {
        const sums = { alive: { workers: used, cores: used } };
        const left = async (rule: FamilyRule) => {
          const throttler = new RuleThrottler(config({ rulesForSiteFamilySubmittedRunning: [rule] }));
          return (
            (await throttler.judge({ ...queue, coresPerWorker: each }, factsOf({}, sums)))?.atMost ?? NaN
          );
        };
        for (const [rule, size] of [
          [workers(most), 1],
          [cores(most), each],
        ] as const) {
          const added = await left(rule);
          if (added > 0) expect(used + added * size).to.be.at.most(most);
          expect(used + (added + 1) * size).to.be.greaterThan(most);
        }
      }),
    );
  });
});

describe('throttlers against the rules they come from', () => {
  /** Harvester's to_be_throttled, as its rules read; but a maximum of a family counts once it is reached, not exceeded. */
  async function oracle(
    rules: TinyThrottlerConfig,
    its: ThrottledQueue,
    facts: ThrottleFacts,
  ): Promise<boolean> {
    const holds: boolean[] = [];
    for (const { level, maxMissed, timeWindow } of rules.rulesForMissed) {
      const values =
        level === 'ce' ? its.computingElements : [level === 'site' ? its.computingSite : its.name];
      for (const value of values)
        holds.push((await facts.missed(level, value, timeWindow * 60_000)) > maxMissed);
    }
    for (const [part, list] of [
      ['queued', rules.rulesForSiteFamilySubmitted],
      ['running', rules.rulesForSiteFamilyRunning],
      ['alive', rules.rulesForSiteFamilySubmittedRunning],
    ] as const) {
      for (const rule of list) {
        const sum = await facts.family(part);
        holds.push(
          rule.level === 'cores'
            ? sum.cores + its.coresPerWorker > rule.maxCores
            : sum.workers + 1 > rule.maxWorkers,
        );
      }
    }
    // No rule at all holds nobody back, also by AND.
    return rules.logicType === 'OR' ? holds.includes(true) : holds.length > 0 && !holds.includes(false);
  }

  it('hold back just when the rules say so', () => {
    const few = fc.nat({ max: 4 });
    const missed = fc.array(
      fc.record({ level: fc.constantFrom('site', 'pq', 'ce'), timeWindow: fc.constant(10), maxMissed: few }),
      { maxLength: 3 },
    );
    const families = fc.array(
      fc.oneof(
        fc.record({ level: fc.constant('workers' as const), maxWorkers: fc.nat({ max: 6 }) }),
        fc.record({ level: fc.constant('cores' as const), maxCores: fc.nat({ max: 40 }) }),
      ),
      { maxLength: 2 },
    );
    const rules = fc.record({
      logicType: fc.constantFrom('OR', 'AND'),
      rulesForMissed: missed,
      rulesForSiteFamilySubmitted: families,
      rulesForSiteFamilyRunning: families,
      rulesForSiteFamilySubmittedRunning: families,
    });
    const counted = fc.record({ site: few, pq: few, ce1: few, ce2: few, queued: few, running: few });
    const elements = fc.constantFrom<string[][]>([], ['ce1'], ['ce1', 'ce2']);
    return fc.assert(
      fc.asyncProperty(rules, counted, elements, async (some, counts, computingElements) => {
        const sum = (count: number) => ({ workers: count, cores: count * 8 });
        const facts = factsOf(
          {
            'site CERN': counts.site,
            'pq CERN/MCORE': counts.pq,
            'ce ce1': counts.ce1,
            'ce ce2': counts.ce2,
          },
          {
            queued: sum(counts.queued),
            running: sum(counts.running),
            alive: sum(counts.queued + counts.running),
          },
        );
        const its = { ...queue, computingElements };
        const verdict = await new RuleThrottler(some).judge(its, facts);
        expect(verdict?.atMost === 0).to.equal(await oracle(some, its, facts));
        expect(verdict?.reason.message).to.not.equal('');
      }),
      { numRuns: 1000 },
    );
  });
});

describe('the configuration of throttlers', () => {
  const context = pluginContext();

  it('is what production files have', () => {
    const rulesForMissed = [{ level: 'pq', timeWindow: 10, maxMissed: 10 }];
    for (const { config: schema } of [SimpleThrottler, TinyThrottler]) {
      const checked = check(schema, { rulesForMissed });
      expect(checked).to.deep.include({ ok: true });
      if (checked.ok) expect(checked.value).to.deep.include({ logicType: 'OR', rulesForMissed });
    }
  });

  const wrong: Record<string, unknown>[] = [
    { logicType: 'XOR' },
    { logicType: 'or' },
    { rulesForMissed: { level: 'pq', timeWindow: 10, maxMissed: 10 } },
    { rulesForMissed: [{ level: 'queue', timeWindow: 10, maxMissed: 10 }] },
    { rulesForMissed: [{ level: 'pq', maxMissed: 10 }] },
    { rulesForMissed: [{ level: 'pq', timeWindow: 0, maxMissed: 10 }] },
    { rulesForMissed: [{ level: 'pq', timeWindow: 10, maxMissed: '10' }] },
    { rulesForMissed: [{ level: 'pq', timeWindow: 10, maxMissed: -1 }] },
    { rulesForSiteFamilySubmitted: [{ level: 'cores', maxWorkers: 10 }] },
    { rulesForSiteFamilyRunning: [{ level: 'workers' }] },
    { rulesForSiteFamilySubmittedRunning: [{ level: 'jobs', maxWorkers: 10 }] },
  ];
  for (const written of wrong) {
    it(`is not ${JSON.stringify(written)}`, () => {
      expect(check(TinyThrottler.config, written).ok).to.equal(false);
    });
  }

  it('without any rule is warned of', async () => {
    const said = await SimpleThrottler.check({ logicType: 'OR', rulesForMissed: [] }, context);
    expect(said.map(({ code, severity }) => [code, severity])).to.deep.equal([
      ['throttler-without-rules', 'warning'],
    ]);
    expect(await TinyThrottler.check(config({}), context)).to.have.length(1);
    const rules = config({ rulesForSiteFamilyRunning: [{ level: 'cores', maxCores: 8 }] });
    expect(await TinyThrottler.check(rules, context)).to.deep.equal([]);
  });
});

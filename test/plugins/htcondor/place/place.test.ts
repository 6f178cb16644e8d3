import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { cesOf } from '../../../../src/plugins/htcondor/place/ce-list.ts';
import {
  type CeCounts,
  ceWeights,
  shareAmongCes,
  type WeightOptions,
} from '../../../../src/plugins/htcondor/place/ce-weight.ts';
import {
  readHostConfig,
  scheddsOf,
  shareAmong,
  submissionHostOf,
} from '../../../../src/plugins/htcondor/place/schedds.ts';
import { ce, submitterConfig } from '../../../support/htcondor-batch.ts';
import { files } from '../../../support/operator-files.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** Numbers one after the other, then again. */
const sequence = (...numbers: number[]) => {
  let nth = 0;
  return () => numbers[nth++ % numbers.length] ?? 0;
};
const where = (options: object) => scheddsOf(submitterConfig(options), 'here');

describe('the schedds of a queue', () => {
  for (const [what, options, expected] of [
    ["this machine's, where nothing is said", {}, ['LOCAL']],
    ['one with its pool', { condorSchedd: 'a', condorPool: 'p' }, ['a,p']],
    ['one without a pool', { condorSchedd: 'a' }, ['a,None']],
    ['several with one pool', { condorSchedd: ['a', 'b'], condorPool: 'p' }, ['a,p', 'b,p']],
    ['several with a pool each', { condorSchedd: ['a', 'b'], condorPool: ['p', 'q'] }, ['a,p', 'b,q']],
    [
      'of this machine by its name',
      { condorSchedd: 'x@${hostname}', condorPool: '$hostname' },
      ['x@here,here'],
    ],
  ] as const) {
    it(`are ${what}`, () => {
      const found = where(options);
      expect(found.ok && found.schedds.map(submissionHostOf)).to.deep.equal(expected);
    });
  }

  it('with too few pools, or one of them twice, are a mistake', () => {
    const few = where({ condorSchedd: ['a', 'b'], condorPool: ['p'] });
    expect(!few.ok && few.problems[0]?.message).to.match(/^condorPool has 1 entries and condorSchedd 2/);
    const twice = where({ condorSchedd: ['a', 'a'] });
    expect(!twice.ok && twice.problems[0]?.message).to.match(/^condorSchedd has a twice/);
  });

  const hostConfig = async (text: string) => {
    const file = join(temporaryDirectory(), 'hosts.json');
    writeFileSync(file, text);
    const read = await readHostConfig(files, file);
    return read.ok ? read.schedds : read.problems.map(({ line, message }) => `${line ?? 0} ${message}`);
  };

  it('come from condorHostConfig, with their weights', async () => {
    expect(
      await hostConfig('{"a": {"pool": "p", "weight": 3}, "b": {"pool": "q", "weight": "1"}}'),
    ).to.deep.equal([
      { name: 'a', pool: 'p', weight: 3 },
      { name: 'b', pool: 'q', weight: 1 },
    ]);
  });

  for (const [text, message] of [
    ['{"a": {"pool": "p",\n "weight": -1}}', /^2 weight of a is -1/],
    ['{"a": {"pool": "p"}}', /^1 weight of a is missing/],
    ['{"a": {"weight": 1}}', /^1 pool of a is missing/],
    ['{"a": 1}', /^1 a is no object/],
    ['[]', /^1 it is a list/],
    ['{}', /^1 it is empty/],
    ['{"a": {"pool": "p", "weight": 0}}', /every weight is 0/],
    ['{', /not valid JSON/],
  ] as const) {
    it(`refuse the condorHostConfig ${text.replace('\n', ' ')}`, async () => {
      expect((await hostConfig(text))[0]).to.match(message);
    });
  }
});

describe('the share of each schedd', () => {
  const three = [
    { name: 'a', weight: 2 },
    { name: 'b', weight: 1 },
    { name: 'c', weight: 0 },
  ];
  const names = (count: number, minBulk: number, ...random: number[]) =>
    shareAmong(three, count, minBulk, sequence(...random))
      .map(({ name }) => name)
      .join('');

  it('of a small batch is all or nothing', () => {
    expect(names(5, 20, 0.1)).to.equal('aaaaa');
    expect(names(5, 20, 0.9)).to.equal('bbbbb');
  });

  it('of a large one follows the weights, in one submission each', () => {
    expect(names(6, 2, 0.1, 0.1)).to.equal('aaaabb');
    expect(names(7, 2, 0.9, 0.1)).to.equal('bbaaaaa');
  });

  it('covers every worker once, and never a schedd of weight 0', () => {
    fc.assert(
      fc.property(
        fc.nat(300),
        fc.integer({ min: 1, max: 50 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (count, bulk, chance) => {
          const shared = shareAmong(three, count, bulk, () => chance);
          return shared.length === count && shared.every(({ weight }) => weight > 0);
        },
      ),
    );
  });
});

describe('the CEs of a queue', () => {
  const elements = (...list: object[]) => cesOf(submitterConfig({ ceList: list })).ces;

  for (const [flavour, given, endpoint] of [
    ['htcondor-ce', 'ce1.org', 'ce1.org:9619'],
    ['htcondor-ce', 'https://ce1.org:9620', 'ce1.org:9620'],
    ['cream-ce', 'ce1.org', 'ce1.org:8443'],
    ['arc-ce', 'ce1.org', 'ce1.org:443'],
    ['arc-ce', 'gsiftp://ce1.org:2811', 'ce1.org:443'],
    ['arc-ce', 'https://ce1.org:8444', 'ce1.org:8444'],
  ] as const) {
    it(`have the endpoint ${endpoint} for ${given} of an ${flavour}`, () => {
      const [found] = elements({ ce_endpoint: given, ce_flavour: flavour });
      expect(found).to.include({ endpoint, hostname: 'ce1.org', flavour });
    });
  }

  it('are only those that are active, each endpoint once', () => {
    const found = elements(
      { ce_endpoint: 'a', ce_queue_name: 'long' },
      { ce_endpoint: 'a', ce_queue_name: 'default' },
      { ce_endpoint: 'b', ce_state: 'DISABLED' },
    );
    expect(found.map(({ endpoint, queueName }) => `${endpoint} ${queueName}`)).to.deep.equal(['a:9619 long']);
  });

  it('are as Harvester takes them from ceEndpoint and ceHostname', () => {
    const two = {
      ceHostname: ['a', 'b'],
      ceEndpoint: ['https://a:443/arex', 'https://b:443/arex'],
      ceQueueName: 'EL9',
    };
    expect(
      cesOf(submitterConfig(two)).ces.map(({ hostname, endpoint }) => `${hostname} ${endpoint}`),
    ).to.deep.equal(['a https://a:443/arex', 'b https://b:443/arex']);
    expect(cesOf(submitterConfig({ ceHostname: 'a', ceEndpoint: 'a:9619' })).ces).to.have.length(1);
    expect(cesOf(submitterConfig({})).ces).to.deep.equal([]);
  });

  it('in lists of different length, or none of them active, are a mistake', () => {
    const uneven = cesOf(submitterConfig({ ceHostname: ['a', 'b'], ceEndpoint: ['x'] }));
    expect(uneven.problems[0]?.message).to.match(/^ceEndpoint has 1 entries and ceHostname 2/);
    const off = cesOf(submitterConfig({ ceList: [{ ce_endpoint: 'a', ce_state: 'TEST' }] }));
    expect(off.problems[0]?.message).to.match(/ce_state ACTIVE/);
  });
});

describe('the weight of a CE', () => {
  const counts = (queued: number, running: number, finished = running): CeCounts => ({
    queued,
    running,
    recent: { queued, running, finished },
  });
  const usual: WeightOptions = { queueLimit: 100, newWorkers: 20, slave: false, fairsharePercent: 50 };
  const weigh = (of: Record<string, CeCounts>, changes: Partial<WeightOptions> = {}) =>
    ceWeights(['a', 'b'], new Map(Object.entries(of)), { ...usual, ...changes });
  const of = (weights: ReadonlyMap<string, number>, name: string) => weights.get(name) ?? NaN;

  it('is the same for all while nothing is known', () => {
    expect([...weigh({}).values()]).to.deep.equal([60, 60]);
  });

  it('is 0 above the limit of the queue', () => {
    expect(of(weigh({ a: counts(101, 5), b: counts(1, 5) }), 'a')).to.equal(0);
  });

  it('is less where more is queued, and where nothing runs', () => {
    const queued = weigh({ a: counts(30, 10), b: counts(5, 10) });
    expect(of(queued, 'a')).to.be.lessThan(of(queued, 'b'));
    const dead = weigh({ a: counts(10, 0), b: counts(10, 10) });
    expect(of(dead, 'a')).to.be.lessThan(of(dead, 'b') / 5);
  });

  it('has the numbers of Harvester', () => {
    // By hand: throughput log(41/11), log(21/6), average log(61/16); parts by half, and nothing for slots.
    const found = weigh({ a: counts(10, 20, 10), b: counts(5, 10, 5) });
    const average = Math.log(61 / 16);
    const parts = [0.5 * (Math.log(41 / 11) / average) + 0.25, 0.5 * (Math.log(21 / 6) / average) + 0.25];
    const [a = 0, b = 0] = parts;
    expect(of(found, 'a')).to.be.closeTo((120 * a) / (a + b) - 10, 1e-9);
    expect(of(found, 'b')).to.be.closeTo((120 * b) / (a + b) - 5, 1e-9);
  });

  it('counts what is queued in place of the limit where the server says how many', () => {
    const found = weigh({ a: counts(4, 10), b: counts(4, 10) }, { slave: true });
    expect(of(found, 'a')).to.be.closeTo(10, 1e-9);
  });

  it('is never negative or no number', () => {
    const any = fc.nat(200);
    const ceCounts = fc.record({
      queued: any,
      running: any,
      recent: fc.record({ queued: any, running: any, finished: any }),
    });
    fc.assert(
      fc.property(ceCounts, ceCounts, fc.boolean(), fc.nat(100), (a, b, slave, fairsharePercent) =>
        [...weigh({ a, b }, { slave, fairsharePercent }).values()].every(
          (weight) => weight >= 0 && Number.isFinite(weight),
        ),
      ),
    );
  });

  const two = [
    { ...ce, endpoint: 'a' },
    { ...ce, endpoint: 'b' },
  ];
  const share = (newWorkers: number, chance: number, of_: Record<string, CeCounts> = {}) =>
    shareAmongCes(two, new Map(Object.entries(of_)), { ...usual, newWorkers }, () => chance)
      .map(({ endpoint }) => endpoint)
      .join('');

  it('decides where one worker goes', () => {
    expect([0, 0.49, 0.5, 0.999].map((chance) => share(1, chance))).to.deep.equal(['a', 'a', 'b', 'b']);
    expect(share(1, 0, { a: counts(101, 1), b: counts(1, 1) })).to.equal('b');
  });

  it('decides between CEs that only have a machine', () => {
    const machines = ['a', 'b'].map((hostname) => ({ ...ce, endpoint: '', hostname }));
    const full = new Map([
      ['a', counts(101, 1)],
      ['b', counts(1, 1)],
    ]);
    const [chosen] = shareAmongCes(machines, full, { ...usual, newWorkers: 1 }, () => 0);
    expect(chosen?.hostname).to.equal('b');
  });

  it('divides a batch', () => {
    expect(share(6, 0.3)).to.equal('aaabbb');
    // The weights are 51 and 54.
    expect(share(20, 0.3, { a: counts(10, 20, 10), b: counts(5, 10, 5) })).to.equal(
      `${'a'.repeat(10)}${'b'.repeat(10)}`,
    );
    expect(share(4, 0.3, { a: counts(101, 1), b: counts(1, 1) })).to.equal('bbbb');
  });

  it('gives each its part to one worker, whatever chance says', () => {
    fc.assert(
      fc.property(
        fc.nat(60),
        fc.nat(60),
        fc.nat(99),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (a, b, n, chance) => {
          const of_ = { a: counts(a, 5), b: counts(b, 5) };
          const weights = weigh(of_, { newWorkers: n });
          const exact = (n * of(weights, 'a')) / (of(weights, 'a') + of(weights, 'b'));
          const shared = share(n, chance, of_);
          return shared.length === n && Math.abs([...shared.matchAll(/a/g)].length - exact) < 1 + 1e-6;
        },
      ),
    );
  });

  it('leaves any where all have more than enough, and none where there is none', () => {
    expect(share(2, 0.9, { a: counts(101, 1), b: counts(101, 1) })).to.equal('ab');
    expect(shareAmongCes([], new Map(), usual, () => 0)).to.deep.equal([]);
  });
});

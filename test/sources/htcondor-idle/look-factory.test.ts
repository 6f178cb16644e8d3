import { expect } from 'chai';
import type { AdText } from '../../../src/clients/htcondor/ad-text.ts';
import type { Ad } from '../../../src/clients/htcondor/json-objects.ts';
import type { AdQuestion, Pool } from '../../../src/clients/htcondor/pool-client.ts';
import { askOwnStartds } from '../../../src/sources/htcondor-idle/look/own-startds.ts';
import { SlotReader } from '../../../src/sources/htcondor-idle/look/pool-slots.ts';

const { signal } = new AbortController();

const slotText = (name: string): AdText =>
  new Map([
    ['name', `"${name}"`],
    ['state', '"Claimed"'],
    ['partitionableslot', 'true'],
    ['cpus', '0'],
    ['totalslotcpus', '16'],
  ]);

/** What `condor_status` says of these constraints. The fixed worker names the empty factory, as its Deployment gives it none. */
const byConstraint: Readonly<Record<string, readonly string[]>> = {
  'DynamicSlot =!= true': ['fixed', 'f1', 'f2'],
  'DynamicSlot =!= true && ThresherFactory =!= ""': ['f1', 'f2'],
  'DynamicSlot =!= true && ThresherFactory =!= "f1"': ['fixed', 'f2'],
};

const pool = {
  adTexts: async <T>(_kind: string, { constraint = '' }: AdQuestion, read: (ad: AdText) => T) =>
    (byConstraint[constraint] ?? []).map((name) => read(slotText(name))),
  ads: async <T>(_kind: string, { constraint }: AdQuestion, read: (ad: Ad) => T | undefined) => {
    const ad = {
      Name: 'fixed',
      MyAddress: '<1>',
      ThresherFactory: '',
      ThresherWorker: '7',
      State: 'Unclaimed',
    };
    return constraint === 'ThresherFactory =?= ""' ? [ad].flatMap((one) => read(one) ?? []) : [];
  },
} as unknown as Pool;

const wholesOf = async (factoryId: string) => {
  const { kinds } = await new SlotReader(pool, factoryId).read(new Set(), new Set(), signal);
  return kinds.flatMap(({ wholes }) => wholes);
};

describe('the slots of a pool', () => {
  it('of our own workers are none of the pool', async () => {
    expect(await wholesOf('f1')).to.have.length(2);
  });

  it('hole 8: are told apart by what they rest on, and by what jobs look for once those with many names are gone', async () => {
    const asked: string[][] = [];
    const site = (name: string) =>
      new Map([...slotText(name), ['start', '"site" == Site'], ['site', `"${name}"`], ['rack', '"r"']]);
    const two = {
      adTexts: async <T>(_kind: string, { attributes }: AdQuestion, read: (ad: AdText) => T) => {
        asked.push(attributes.map((one) => one.toLowerCase()));
        const has = new Set(asked.at(-1));
        return ['a', 'b'].map((name) => read(new Map([...site(name)].filter(([key]) => has.has(key)))));
      },
    } as unknown as Pool;
    const reader = new SlotReader(two, 'f1');
    const names = (count: number, prefix: string) =>
      new Set(Array.from({ length: count }, (_, at) => `${prefix}${at}`));
    const { kinds } = await reader.read(names(5000, 'x'), new Set(), signal);
    expect(kinds).to.have.length(2);
    for (const attributes of asked) expect(attributes.length).to.be.below(330);
    expect(asked.at(-1)).to.include('site');
    await reader.read(new Set(['rack']), new Set(), signal);
    expect(asked.at(-1)).to.include('rack');
    await reader.read(new Set(['rack']), new Set(), signal);
    expect(asked.at(-1)).to.not.include('x1');
  });

  it('of a worker that was made again are those of the startd heard of last', async () => {
    const ad = (MyAddress: string, LastHeardFrom: number) => ({
      Name: `slot1@${MyAddress}`,
      MyAddress,
      LastHeardFrom,
      DaemonStartTime: LastHeardFrom - 100,
      ThresherWorker: '7',
      ThresherQueue: 'Q',
      ThresherShape: 'Q',
      State: 'Unclaimed',
      PartitionableSlot: true,
      Cpus: 4,
    });
    const ads = [ad('<old>', 900), ad('<new>', 1000), { ...ad('<other>', 500), ThresherWorker: '8' }];
    const two = {
      ads: async <T>(_kind: string, _question: AdQuestion, read: (ad: Ad) => T | undefined) =>
        ads.flatMap((one) => read(one) ?? []),
    } as unknown as Pool;
    const { startds, spaces } = await askOwnStartds(two, 'f1', [], signal);
    expect(startds.map(({ workerId, slot }) => [workerId, slot])).to.deep.equal([
      [7, 'slot1@<new>'],
      [8, 'slot1@<other>'],
    ]);
    expect(spaces.map(({ name }) => name)).to.deep.equal(['slot1@<new>']);
  });

  it('are all of the pool without a factory, those of fixed workers among them', async () => {
    expect(await wholesOf('')).to.have.length(3);
    const { startds } = await askOwnStartds(pool, '', [], signal);
    expect(startds).to.deep.equal([]);
  });
});

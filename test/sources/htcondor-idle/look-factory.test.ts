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

  it('are all of the pool without a factory, those of fixed workers among them', async () => {
    expect(await wholesOf('')).to.have.length(3);
    const { startds } = await askOwnStartds(pool, '', [], signal);
    expect(startds).to.deep.equal([]);
  });
});

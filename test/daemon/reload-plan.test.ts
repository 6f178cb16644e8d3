import { expect } from 'chai';
import fc from 'fast-check';
import type { QueueConfig } from '../../src/config/queues/queues.ts';
import { keyOf, planReload, type PlannedVersion, type QueueVersion } from '../../src/daemon/reload-plan.ts';

const version = (name: string, configId: number): QueueVersion => ({
  configId,
  config: { name } as QueueConfig,
});
const brief = (versions: readonly PlannedVersion[]) =>
  versions.map(({ config, configId, current }) => `${config.name}${configId}${current ? '' : ' older'}`);
const nothing = { current: [], older: [], file: [], inUse: [], held: new Set<number>() };

function planned(state: Partial<Parameters<typeof planReload>[0]>) {
  const { stay, leave, come } = planReload({ ...nothing, ...state });
  return { stay: brief(stay), leave: brief(leave), come: brief(come) };
}

describe('the plan of a reload', () => {
  it('keeps a queue that did not change', () => {
    const plan = planned({ current: [version('A', 1)], file: [version('A', 1)], inUse: [version('A', 1)] });
    expect(plan).to.deep.equal({ stay: ['A1'], leave: [], come: [] });
  });

  it('begins a new queue', () => {
    expect(planned({ file: [version('A', 1)] })).to.deep.equal({ stay: [], leave: [], come: ['A1'] });
  });

  it('follows the workers of a changed queue with its former configuration, even where no row names it yet', () => {
    const plan = planned({ current: [version('A', 1)], file: [version('A', 2)] });
    expect(plan).to.deep.equal({ stay: [], leave: ['A1'], come: ['A2', 'A1 older'] });
  });

  it('follows the workers of a removed queue', () => {
    const plan = planned({ current: [version('A', 1)], inUse: [version('A', 1)] });
    expect(plan).to.deep.equal({ stay: [], leave: ['A1'], come: ['A1 older'] });
  });

  it('ends an older configuration that no worker carries any more', () => {
    const state = { current: [version('A', 2)], older: [version('A', 1)], file: [version('A', 2)] };
    expect(planned(state)).to.deep.equal({ stay: ['A2'], leave: ['A1 older'], come: [] });
  });

  it('keeps an older configuration that workers carry', () => {
    const state = { current: [version('A', 2)], older: [version('A', 1)], file: [version('A', 2)] };
    const plan = planned({ ...state, inUse: [version('A', 1)] });
    expect(plan).to.deep.equal({ stay: ['A2', 'A1 older'], leave: [], come: [] });
  });

  it('keeps an older configuration that a listing may adopt workers with', () => {
    const plan = planned({ older: [version('A', 1)], held: new Set([1]) });
    expect(plan).to.deep.equal({ stay: ['A1 older'], leave: [], come: [] });
  });

  it('makes an older configuration the current one again when an operator takes a change back', () => {
    const state = { current: [version('A', 2)], older: [version('A', 1)], file: [version('A', 1)] };
    const plan = planned({ ...state, inUse: [version('A', 1), version('A', 2)] });
    expect(plan).to.deep.equal({ stay: [], leave: ['A2', 'A1 older'], come: ['A1', 'A2 older'] });
  });

  it('follows configurations of workers at the start, whose queues the file does not have', () => {
    const plan = planned({ file: [version('B', 3)], inUse: [version('A', 1), version('B', 2)] });
    expect(plan).to.deep.equal({ stay: [], leave: [], come: ['B3', 'A1 older', 'B2 older'] });
  });

  it('never runs two current configurations of a queue, nor one configuration twice, nor loses one in use', () => {
    const names = ['A', 'B', 'C'];
    // The number of a configuration says its queue, as in the database.
    const ofId = (configId: number) => version(names[configId % names.length] ?? '', configId);
    const onePerQueue = (ids: readonly number[]) => [
      ...new Map(ids.map((id) => [ofId(id).config.name, ofId(id)])).values(),
    ];
    const ids = fc.uniqueArray(fc.nat(11), { maxLength: 8 });
    const property = fc.property(ids, ids, ids, ids, ids, (a, b, c, d, e) => {
      const current = onePerQueue(a);
      const older = b.filter((id) => !current.some(({ configId }) => configId === id)).map(ofId);
      const [file, inUse] = [onePerQueue(c), d.map(ofId)];
      const { stay, leave, come } = planReload({ current, older, file, inUse, held: new Set(e) });
      const after = [...stay, ...come];
      const currentNames = after.filter((one) => one.current).map(({ config }) => config.name);
      expect(currentNames.toSorted()).to.deep.equal(file.map(({ config }) => config.name).toSorted());
      const afterIds = after.map(({ configId }) => configId);
      expect(new Set(afterIds).size).to.equal(afterIds.length);
      for (const { configId } of [...inUse, ...current]) expect(afterIds).to.include(configId);
      const before = [...stay, ...leave].map(keyOf);
      expect(before.toSorted()).to.deep.equal(
        [
          ...current.map((one) => keyOf({ ...one, current: true })),
          ...older.map((one) => keyOf({ ...one, current: false })),
        ].toSorted(),
      );
    });
    fc.assert(property);
  });
});

import { expect } from 'chai';
import { entriesOf, partOfSlot } from '../../../src/agents/submission/entries.ts';
import { shapeOf } from '../../../src/sources/panda/shape.ts';
import type { Requirements } from '../../../src/worker/worker.ts';
import { requirements } from '../../support/samples.ts';

/** A whole slot of a site. */
const slot: Requirements = {
  ...requirements,
  nCore: 8,
  minRamCount: 32_000,
  maxDiskCount: 80_000,
  resourceType: 'MCORE',
};
const types = [
  { resource_name: 'SCORE', mincore: 1, maxcore: 1, minrampercore: null, maxrampercore: 2000 },
  { resource_name: 'SCORE_HIMEM', mincore: 1, maxcore: 1, minrampercore: 2001, maxrampercore: null },
  { resource_name: 'MCORE', mincore: 2, maxcore: null, minrampercore: null, maxrampercore: 2000 },
  { resource_name: 'MCORE_HIMEM', mincore: 2, maxcore: null, minrampercore: 2001, maxrampercore: null },
];
/** The needs of a worker of a resource type, as the PanDA server's orders name it. */
const needsOf = (type: string): Requirements => ({
  ...slot,
  ...shapeOf(type, types, { coreCount: slot.nCore, maxRss: slot.minRamCount }),
});

describe('a worker on a slot of a unified queue', () => {
  it('has the whole disk, and the memory of its resource type, unless the queue says otherwise', () => {
    const shapes = ['SCORE', 'SCORE_HIMEM', 'MCORE', 'MCORE_HIMEM'].map((type) => {
      const { nCore, minRamCount, maxDiskCount } = partOfSlot(needsOf(type), slot, {});
      return [nCore, minRamCount, maxDiskCount];
    });
    expect(shapes).to.deep.equal([
      [1, 2000, 80_000],
      [1, 4000, 80_000],
      [8, 16_000, 80_000],
      [8, 32_000, 80_000],
    ]);
  });

  it('has its part of the disk by its cores where the disk is shared', () => {
    const diskOf = (needs: Requirements) => partOfSlot(needs, slot, { diskByCores: true }).maxDiskCount;
    expect(diskOf(needsOf('SCORE'))).to.equal(10_000);
    expect(diskOf(needsOf('MCORE'))).to.equal(80_000);
    expect(diskOf({ ...needsOf('SCORE'), maxDiskCount: 5 })).to.equal(5);
    expect(diskOf({ ...slot, nCore: 3 })).to.equal(30_000);
    expect(
      partOfSlot({ ...slot, nCore: 3 }, { ...slot, maxDiskCount: 10 }, { diskByCores: true }).maxDiskCount,
    ).to.equal(80_000);
  });

  it('has its part of all memory where its queue uses the most there is', () => {
    const memoryOf = (needs: Requirements) => partOfSlot(needs, slot, { useMaxRam: true }).minRamCount;
    expect(memoryOf(needsOf('SCORE'))).to.equal(4000);
    expect(memoryOf(needsOf('MCORE'))).to.equal(32_000);
    expect(memoryOf({ ...needsOf('SCORE'), minRamCount: 9000 })).to.equal(9000);
  });

  it('has it as a request of a source names it', () => {
    const origin = { uid: 'order', index: 0 };
    const request = { origin, requirements: { nCore: 1, minRamCount: 2000, resourceType: 'SCORE' } };
    const [entry] = entriesOf('panda', [request], slot, { useMaxRam: true, diskByCores: true });
    expect(entry?.requirements).to.include({ nCore: 1, minRamCount: 4000, maxDiskCount: 10_000 });
  });
});

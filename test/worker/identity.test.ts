import { expect } from 'chai';
import fc from 'fast-check';
import {
  factoryIdPattern,
  highestForeignId,
  newFactoryId,
  workerIdFloor,
  workerName,
} from '../../src/worker/identity.ts';

const year2020 = Date.UTC(2020, 0, 1);
const year2159 = Date.UTC(2159, 0, 1);
const year9999 = Date.UTC(9999, 0, 1);

describe('the floor of worker ids', () => {
  const time = fc.integer({ min: 0, max: year9999 });

  it('the floor of worker ids never falls as time goes on', () => {
    fc.assert(
      fc.property(time, time, (a, b) => {
        expect(workerIdFloor(Math.min(a, b))).to.be.at.most(workerIdFloor(Math.max(a, b)));
      }),
    );
  });

  it('rises by 20 a second, so that a second database starts above 20 workers a second of the first', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: year2020 + 1000, max: year2159 }),
        fc.integer({ min: 1, max: 100_000_000 }),
        (at, seconds) => {
          expect(workerIdFloor(at + seconds * 1000) - workerIdFloor(at)).to.equal(seconds * 20);
        },
      ),
    );
  });

  it('is a positive integer that fits PanDA’s 11 digits, whatever the clock says', () => {
    fc.assert(
      fc.property(time, (at) => {
        const floor = workerIdFloor(at);
        expect(Number.isInteger(floor)).to.equal(true);
        expect(floor).to.be.at.least(1);
        expect(String(floor)).to.have.length.at.most(11);
      }),
    );
    expect(workerIdFloor(year9999)).to.equal(highestForeignId);
  });

  it('is 1 on a machine whose clock is before 2020', () => {
    expect(workerIdFloor(0)).to.equal(1);
    expect(workerIdFloor(year2020)).to.equal(1);
  });
});

describe('the factory id', () => {
  it('is drawn as its own pattern asks, whatever the random numbers', () => {
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.array(random, { minLength: 8, maxLength: 8 }), (numbers) => {
        const drawn = [...numbers];
        const id = newFactoryId(() => drawn.shift()!);
        expect(id)
          .to.match(new RegExp(factoryIdPattern))
          .and.to.match(/^thresher-[0-9a-z]{8}$/);
      }),
    );
  });

  for (const wrong of ['', '-a', 'a-', 'A', '1a', 'a_b', 'a.b', 'a'.repeat(31)]) {
    it(`"${wrong}" is no factory id`, () => {
      expect(wrong).not.to.match(new RegExp(factoryIdPattern));
    });
  }

  for (const right of ['a', 'a1', 'a-b', 'a'.repeat(30)]) {
    it(`"${right}" may be a factory id`, () => {
      expect(right).to.match(new RegExp(factoryIdPattern));
    });
  }

  it('the factory id and the worker id make the name of the backend’s object, always the same', () => {
    expect(workerName('thresher-0a', 17)).to.equal('thresher-0a-17');
  });
});

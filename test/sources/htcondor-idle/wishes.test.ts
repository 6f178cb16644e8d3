import { expect } from 'chai';
import fc from 'fast-check';
import { shapeOfOrigin, Wishes } from '../../../src/sources/htcondor-idle/wishes.ts';

const uids = (wishes: Wishes, shape = 'Q/small') => wishes.of(shape).map(({ origin }) => origin.uid);

describe('wishes for workers', () => {
  let wishes: Wishes;
  let given: number;
  beforeEach(() => {
    given = 0;
    wishes = new Wishes(() => String(given++));
  });

  it('name the shape in the origin, so that it is known after a restart', () => {
    wishes.ask(new Map([['Q/small', 1]]));
    expect(uids(wishes)).to.deep.equal(['Q/small 0']);
    expect(shapeOfOrigin({ uid: 'Q/small 0' })).to.equal('Q/small');
    expect(shapeOfOrigin({ uid: 'Q' })).to.equal(undefined);
  });

  it('are never given out twice by two of them', () => {
    const [one, other] = [new Wishes(), new Wishes()];
    for (const each of [one, other]) each.ask(new Map([['Q', 100]]));
    expect(new Set([...uids(one, 'Q'), ...uids(other, 'Q')]).size).to.equal(200);
  });

  it('are used again by the next decision', () => {
    wishes.ask(new Map([['Q/small', 3]]));
    const before = uids(wishes);
    wishes.ask(new Map([['Q/small', 2]]));
    expect(uids(wishes)).to.deep.equal(before.slice(0, 2));
    wishes.ask(new Map([['Q/small', 4]]));
    expect(uids(wishes).slice(0, 3)).to.deep.equal(before);
  });

  it('that no decision asks for rest, and may still be served by a pass under way', () => {
    wishes.ask(new Map([['Q/small', 3]]));
    const [, second, third] = wishes.of('Q/small');
    wishes.ask(new Map());
    expect(uids(wishes)).to.deep.equal([]);
    wishes.served([second, third].flatMap((wish) => (wish === undefined ? [] : [wish.origin])));
    expect(wishes.open('Q/small')).to.equal(1);
  });

  it('that were served leave as many as the decision asked for beside them', () => {
    wishes.ask(new Map([['Q/small', 3]]));
    const [first] = wishes.of('Q/small');
    wishes.served(first === undefined ? [] : [first.origin]);
    expect(uids(wishes)).to.deep.equal(['Q/small 1', 'Q/small 2']);
  });

  it('never let living workers and open origins exceed the cap of any decision, whatever passes are under way', () => {
    const cap = 5;
    const step = fc.oneof(
      fc.record({ what: fc.constant('decide' as const), wanted: fc.nat(9) }),
      fc.record({ what: fc.constant('pass' as const), slow: fc.nat(3) }),
      fc.record({ what: fc.constant('end' as const), which: fc.nat(9) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const random = new Wishes();
        const living = new Set<string>();
        const had = new Set<string>();
        // Passes that have asked and have not recorded yet.
        const underWay: { readonly uids: readonly string[]; left: number }[] = [];
        for (const one of steps) {
          for (const pass of underWay) pass.left -= 1;
          for (const pass of underWay.filter(({ left }) => left < 0)) {
            underWay.splice(underWay.indexOf(pass), 1);
            for (const uid of pass.uids) {
              if (!had.has(uid)) living.add(uid);
              had.add(uid);
            }
          }
          if (one.what === 'decide') {
            random.served([...had].map((uid) => ({ uid, index: 0 })));
            random.ask(new Map([['Q', Math.min(one.wanted, cap - living.size)]]));
          } else if (one.what === 'pass')
            underWay.push({ uids: random.of('Q').map(({ origin }) => origin.uid), left: one.slow });
          else {
            const uid = [...living][one.which];
            if (uid !== undefined) living.delete(uid);
          }
          expect(living.size).to.be.at.most(cap);
        }
      }),
      { numRuns: 500 },
    );
  });
});

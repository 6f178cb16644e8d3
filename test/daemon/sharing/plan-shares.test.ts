import { expect } from 'chai';
import fc from 'fast-check';
import { type Item, planShares } from '../../../src/daemon/sharing/plan-shares.ts';

const queue = (name: string, ...keys: string[]): Item => ({ name, keys, weight: 1 });
const queues = (count: number): Item[] => Array.from({ length: count }, (_, at) => queue(`queue Q${at}`));

/** How many queues each member has. */
function counts(planned: ReadonlyMap<string, string>): Record<string, number> {
  const found: Record<string, number> = {};
  for (const member of planned.values()) found[member] = (found[member] ?? 0) + 1;
  return found;
}

function moved(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...after].flatMap(([item, member]) => (before.get(item) === member ? [] : [item]));
}

const none: ReadonlyMap<string, string> = new Map();

describe('planShares', () => {
  it('shares out evenly, and says the same again of what it said', () => {
    const items = queues(10);
    const planned = planShares({ items, members: ['a', 'b'], holders: none });
    expect(counts(planned)).to.deep.equal({ a: 5, b: 5 });
    expect(planShares({ items, members: ['b', 'a'], holders: planned })).to.deep.equal(planned);
  });

  it('moves to a daemon that joins what it must, and nothing among the others', () => {
    const items = queues(12);
    const before = planShares({ items, members: ['a', 'b', 'c'], holders: none });
    const after = planShares({ items, members: ['a', 'b', 'c', 'd'], holders: before });
    const changed = moved(before, after);
    expect(changed).to.have.length(3);
    expect(changed.map((item) => after.get(item))).to.deep.equal(['d', 'd', 'd']);
  });

  it('moves what a daemon that is gone had, and nothing else', () => {
    const items = queues(12);
    const before = planShares({ items, members: ['a', 'b', 'c'], holders: none });
    const after = planShares({ items, members: ['a', 'c'], holders: before });
    expect(moved(before, after)).to.have.members(
      [...before].flatMap(([item, member]) => (member === 'b' ? [item] : [])),
    );
    expect(counts(after)).to.deep.equal({ a: 6, c: 6 });
  });

  it('gives a part to a daemon that joins also where there are few queues', () => {
    const items = queues(4);
    const before = planShares({ items, members: ['a', 'b'], holders: none });
    const after = planShares({ items, members: ['a', 'b', 'c'], holders: before });
    expect(Object.values(counts(after)).sort()).to.deep.equal([1, 1, 2]);
    expect(moved(before, after)).to.have.length(1);
  });

  it('keeps together what has a key in common, also by way of a third', () => {
    const items = [queue('queue A', 'x'), queue('queue B', 'y'), queue('queue C', 'x', 'y'), ...queues(5)];
    const planned = planShares({ items, members: ['a', 'b', 'c'], holders: none });
    expect(new Set(['queue A', 'queue B', 'queue C'].map((name) => planned.get(name)))).to.have.property(
      'size',
      1,
    );
  });

  it('brings a group together that is spread over daemons, where most of it is', () => {
    const items = [queue('queue A', 'x'), queue('queue B', 'x'), queue('queue C', 'x')];
    const holders = new Map([
      ['queue A', 'b'],
      ['queue B', 'a'],
      ['queue C', 'b'],
    ]);
    expect([...planShares({ items, members: ['a', 'b'], holders }).values()]).to.deep.equal(['b', 'b', 'b']);
  });

  it('gives a queue to its owner, to another one while that is gone, and back', () => {
    const items = [{ ...queue('queue A'), owner: 'a' }, ...queues(3)];
    const members = ['a', 'b'];
    expect(planShares({ items, members, holders: none }).get('queue A')).to.equal('a');
    const without = planShares({ items, members: ['b'], holders: new Map([['queue A', 'a']]) });
    expect(without.get('queue A')).to.equal('b');
    expect(planShares({ items, members, holders: without }).get('queue A')).to.equal('a');
  });

  it('leaves what is bound to a machine there, also while its daemon is gone', () => {
    const items = [{ ...queue('queue A'), bound: true }, ...queues(3)];
    expect(
      planShares({ items, members: ['b'], holders: new Map([['queue A', 'a']]) }).get('queue A'),
    ).to.equal('a');
    expect(planShares({ items, members: ['b'], holders: none }).get('queue A')).to.equal('b');
  });

  it('takes nothing along with what is bound to a machine', () => {
    const items = [{ ...queue('queue L', 'x'), bound: true }, queue('queue A', 'x')];
    const holders = new Map([['queue L', 'gone']]);
    const planned = planShares({ items, members: ['a'], holders });
    expect([...planned]).to.have.deep.members([
      ['queue L', 'gone'],
      ['queue A', 'a'],
    ]);
  });

  it('holds, for random items, members and holders: all are planned, evenly, groups stay whole, and it is stable', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const item = fc.record({
      key: fc.option(fc.nat(20), { nil: undefined }),
      weight: fc.constantFrom(0, 1, 1, 1),
      holder: fc.option(name, { nil: undefined }),
    });
    fc.assert(
      fc.property(
        fc.array(item, { maxLength: 40 }),
        fc.uniqueArray(name, { minLength: 1 }),
        (made, members) => {
          const items = made.map(({ key, weight }, at): Item => ({
            name: `queue ${at}`,
            keys: key === undefined ? [] : [String(key)],
            weight,
          }));
          const holders = new Map(
            made.flatMap(({ holder }, at) =>
              holder === undefined ? [] : [[`queue ${at}`, holder] as const],
            ),
          );
          const planned = planShares({ items, members, holders });
          expect([...planned.keys()]).to.have.members(items.map((one) => one.name));
          for (const member of planned.values()) expect(members).to.include(member);
          const byKey = Map.groupBy(items, ({ keys }) => keys[0]);
          for (const [key, some] of byKey)
            if (key !== undefined) expect(new Set(some.map((one) => planned.get(one.name))).size).to.equal(1);
          const weightOf = (some: readonly Item[]) => some.reduce((sum, { weight }) => sum + weight, 0);
          const heaviest = Math.max(
            1,
            ...[...byKey].map(([key, some]) => (key === undefined ? 1 : weightOf(some))),
          );
          const most = Math.ceil(weightOf(items) / members.length) + heaviest - 1;
          for (const member of members)
            expect(weightOf(items.filter((one) => planned.get(one.name) === member))).to.be.at.most(most);
          expect(planShares({ items: items.toReversed(), members, holders: planned })).to.deep.equal(planned);
        },
      ),
    );
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import { factoryItem, queueItem, queueOf, sourceItem } from '../../../src/daemon/sharing/item-names.ts';
import type { Item } from '../../../src/daemon/sharing/plan-shares.ts';
import { Sharing } from '../../../src/daemon/sharing/sharing.ts';
import type { Member, Share, ShareStore } from '../../../src/store/shares.ts';
import { noLog } from '../../../src/cli/environment.ts';

const keepFor = 3000;

/** The tables that all members see, and the rules that PostgreSQL keeps. */
class Tables {
  readonly members = new Map<string, { alive: boolean; epoch: number; knows: string | undefined }>();
  readonly shares = new Map<string, string>();

  storeOf(name: string): ShareStore {
    const epoch = (this.members.get(name)?.epoch ?? 0) + 1;
    this.members.set(name, { alive: true, epoch, knows: undefined });
    const requireOwn = () => {
      if (this.members.get(name)?.epoch !== epoch) throw new Error('fenced');
    };
    const own = (items: readonly string[]) => items.filter((item) => this.shares.get(item) === name);
    return {
      member: name,
      members: async () =>
        [...this.members].map(([member, { alive, knows }]): Member => {
          return { name: member, holder: member, since: '', alive, knows };
        }),
      all: async () => [...this.shares].map(([item, member]): Share => ({ item, member, since: 0 })),
      know: async (digest) => {
        requireOwn();
        this.members.set(name, { alive: true, epoch, knows: digest });
      },
      take: async (items) => {
        requireOwn();
        const taken = items.filter((item) => {
          const holder = this.shares.get(item);
          const lease = holder === undefined ? undefined : this.members.get(holder);
          if (lease?.alive === true) return false;
          if (lease !== undefined) lease.epoch++;
          this.shares.set(item, name);
          return true;
        });
        return new Set(taken);
      },
      give: async (items, to) => {
        requireOwn();
        for (const item of own(items)) this.shares.set(item, to);
      },
      forget: async (items) => {
        requireOwn();
        for (const item of own(items)) this.shares.delete(item);
      },
    };
  }
}

/** A daemon as far as it shares. */
class Daemon {
  readonly sharing: Sharing;
  /** The queues that it works on. */
  readonly works = new Set<string>();
  /** Queues for which a call is under way. */
  readonly busy = new Set<string>();
  readonly name: string;
  readonly epoch: number;
  readonly #tables: Tables;

  constructor(name: string, tables: Tables, now: () => number) {
    this.name = name;
    this.#tables = tables;
    const store = tables.storeOf(name);
    this.epoch = tables.members.get(name)?.epoch ?? 0;
    this.sharing = new Sharing({
      store,
      clock: { monotonic: now },
      log: noLog,
      keepFor,
      release: async (items) => {
        const isBusy = (item: string) => this.busy.has(queueOf(item) ?? item);
        for (const item of items) if (!isBusy(item)) this.works.delete(queueOf(item) ?? item);
        return new Set([...items].filter(isBusy));
      },
      changed: async () => {
        this.works.clear();
        for (const queue of this.sharing.queues) this.works.add(queue);
      },
      step: () => undefined,
    });
  }

  /** Whether what it writes is committed. */
  get counts(): boolean {
    return this.#tables.members.get(this.name)?.epoch === this.epoch;
  }
}

const itemsOf = (queues: readonly string[]): Item[] => [
  { name: factoryItem, keys: [], weight: 0 },
  ...queues.map((queue): Item => ({ name: queueItem(queue), keys: [], weight: 1 })),
];

function use({ sharing }: Daemon, queues: readonly string[]): void {
  sharing.use(itemsOf(queues), itemsOf(queues), queues);
}

describe('sharing', () => {
  let now: number;
  let tables: Tables;
  const start = async (name: string, queues: readonly string[]): Promise<Daemon> => {
    const daemon = new Daemon(name, tables, () => now);
    daemon.sharing.use(itemsOf(queues), itemsOf(queues), queues);
    await daemon.sharing.begin();
    for (const queue of daemon.sharing.queues) daemon.works.add(queue);
    return daemon;
  };
  const settle = async (daemons: readonly Daemon[]): Promise<void> => {
    for (let round = 0; round < 24; round++) {
      now += 1000;
      for (const daemon of daemons) await daemon.sharing.pass();
    }
  };

  beforeEach(() => {
    now = 0;
    tables = new Tables();
  });

  it('gives a queue away only when nothing is under way for it', async () => {
    const one = await start('one', ['A', 'B']);
    expect([...one.works]).to.have.members(['A', 'B']);
    const two = await start('two', ['A', 'B']);
    one.busy.add('A').add('B');
    await settle([one, two]);
    expect([...one.sharing.queues]).to.have.members(['A', 'B']);
    expect([...two.works]).to.deep.equal([]);
    one.busy.clear();
    await settle([one, two]);
    expect(one.works.size).to.equal(1);
    expect(two.works.size).to.equal(1);
  });

  it('gives away a source, and the queues that it serves, only when its life here is over', async () => {
    const items = (queues: readonly string[]): Item[] => [
      { name: sourceItem('toy'), keys: ['toy'], weight: 0 },
      ...itemsOf(queues).map((item) => (item.name === queueItem('A') ? { ...item, keys: ['toy'] } : item)),
    ];
    const all = items(['A', 'B']);
    const one = new Daemon('one', tables, () => now);
    one.sharing.use(all, all, ['A', 'B']);
    await one.sharing.begin();
    one.busy.add(sourceItem('toy')).add('B');
    const two = new Daemon('two', tables, () => now);
    two.sharing.use(all, all, ['A', 'B']);
    await two.sharing.begin();
    await settle([one, two]);
    expect(one.sharing.holdsSource('toy', false)).to.equal(true);
    expect([...one.sharing.queues]).to.have.members(['A', 'B']);
    one.busy.delete(sourceItem('toy'));
    await settle([one, two]);
    const holders = [one, two].map(({ sharing }) => [
      sharing.holdsSource('toy', false),
      sharing.queues.has('A'),
    ]);
    expect(holders).to.have.deep.members([
      [true, true],
      [false, false],
    ]);
  });

  it('keeps what it has while files differ, and shares it out once they agree', async () => {
    const one = await start('one', ['A', 'B', 'C', 'D']);
    const two = await start('two', ['A', 'B']);
    await settle([one, two]);
    expect([...one.works]).to.have.members(['A', 'B', 'C', 'D']);
    use(two, ['A', 'B', 'C', 'D']);
    await settle([one, two]);
    expect([one.works.size, two.works.size]).to.deep.equal([2, 2]);
  });

  it('takes no queue that belongs to what a daemon with other files has', async () => {
    const group = (queues: readonly string[]) => itemsOf(queues).map((item) => ({ ...item, keys: ['x'] }));
    const one = await start('one', []);
    one.sharing.use(group(['A']), group(['A']), ['A']);
    await settle([one]);
    const two = await start('two', []);
    two.sharing.use(group(['A', 'B']), group(['A', 'B']), ['A', 'B']);
    await settle([one, two]);
    expect([...two.works]).to.deep.equal([]);
    one.sharing.use(group(['A', 'B']), group(['A', 'B']), ['A', 'B']);
    await settle([one, two]);
    expect([...one.works].sort()).to.deep.equal(['A', 'B']);
  });

  it('gives a group whole, or not at all', async () => {
    const group = itemsOf(['A', 'B']).map((item) => ({ ...item, keys: item.weight === 1 ? ['x'] : [] }));
    const one = await start('one', []);
    const owned = group.map((item) => ({ ...item, owner: 'two' }));
    for (const each of [one]) each.sharing.use(owned, owned, ['A', 'B']);
    await settle([one]);
    one.busy.add('B');
    const two = await start('two', []);
    two.sharing.use(owned, owned, ['A', 'B']);
    await settle([one, two]);
    expect([...two.works]).to.deep.equal([]);
    expect([...one.sharing.queues].sort()).to.deep.equal(['A', 'B']);
    one.busy.clear();
    await settle([one, two]);
    expect([...two.works].sort()).to.deep.equal(['A', 'B']);
  });

  it('keeps what it has, and takes no more, while its files cannot be read or a queue has a mistake', async () => {
    const one = await start('one', ['A', 'B']);
    one.sharing.use([], [], undefined);
    await settle([one]);
    expect([...one.works].sort()).to.deep.equal(['A', 'B']);
    one.sharing.use(itemsOf(['A']), itemsOf(['A']), ['A', 'B']);
    await settle([one]);
    expect([...one.works].sort()).to.deep.equal(['A', 'B']);
  });

  it('takes nothing of others just after it was cut off itself', async () => {
    const one = await start('one', ['A', 'B']);
    const two = await start('two', ['A', 'B']);
    await settle([one, two]);
    now += 60_000;
    const lease = tables.members.get('one');
    if (lease !== undefined) lease.alive = false;
    await two.sharing.pass();
    expect(two.works.size).to.equal(1);
    if (lease !== undefined) lease.alive = true;
    await settle([one, two]);
    expect([one.works.size, two.works.size, one.counts]).to.deep.equal([1, 1, true]);
  });

  it('forgets a queue that is in no file and has no workers', async () => {
    const one = await start('one', ['A', 'B']);
    use(one, ['A']);
    await settle([one]);
    expect([...one.works]).to.deep.equal(['A']);
    expect([...tables.shares.keys()]).to.have.members([factoryItem, queueItem('A')]);
  });

  it('takes up again what it could not take up', async () => {
    let fails = true;
    const store = tables.storeOf('one');
    const worked: string[][] = [];
    const sharing = new Sharing({
      store,
      clock: { monotonic: () => now },
      log: noLog,
      keepFor,
      release: async (queues) => queues,
      changed: async (fresh) => {
        if (fails) throw new Error('the database is full');
        worked.push([...fresh]);
      },
      step: () => undefined,
    });
    sharing.use(itemsOf(['A']), itemsOf(['A']), ['A']);
    const failure = await sharing.pass().catch((error: unknown) => error);
    expect(String(failure)).to.contain('the database is full');
    expect([...sharing.queues]).to.deep.equal([]);
    fails = false;
    await sharing.pass();
    expect(worked).to.deep.equal([[factoryItem, queueItem('A')]]);
  });

  it('has no queue at two daemons that count, whoever joins, stops, is killed or comes back, and each at one in the end', async () => {
    const queues = ['A', 'B', 'C', 'D', 'E', 'F', 'G'];
    const name = fc.constantFrom('one', 'two', 'three', 'four');
    const step = fc.oneof(
      fc.record({ what: fc.constant('start' as const), name }),
      fc.record({ what: fc.constant('expire' as const), name }),
      fc.record({ what: fc.constant('pass' as const), name }),
      fc.record({ what: fc.constant('pass' as const), name }),
      fc.record({ what: fc.constant('busy' as const), name }),
      fc.record({ what: fc.constant('free' as const), name }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        now = 0;
        tables = new Tables();
        const daemons = new Map<string, Daemon>();
        for (const { what, name: one } of steps) {
          now += 1000;
          const daemon = daemons.get(one);
          const lease = tables.members.get(one);
          switch (what) {
            case 'start':
              // A second one of a name waits until the lease of the first is over.
              if (lease?.alive !== true) daemons.set(one, await start(one, queues));
              break;
            case 'expire':
              // It is gone, or stands still: in that case it passes on.
              if (lease !== undefined) lease.alive = false;
              break;
            case 'pass':
              await daemon?.sharing.pass().catch(() => undefined);
              break;
            case 'busy':
              for (const queue of daemon?.works ?? []) daemon?.busy.add(queue);
              break;
            case 'free':
              daemon?.busy.clear();
          }
          const counting = [...daemons.values()].filter((each) => each.counts);
          const held = counting.flatMap(({ works }) => [...works]);
          expect(held.length, JSON.stringify(steps)).to.equal(new Set(held).size);
          for (const each of counting)
            for (const queue of each.works) expect(tables.shares.get(queueItem(queue))).to.equal(each.name);
        }
        const last = tables.members.get('one')?.alive === true ? daemons.get('one') : undefined;
        if (last?.counts !== true) {
          const lease = tables.members.get('one');
          if (lease !== undefined) lease.alive = false;
          daemons.set('one', await start('one', queues));
        }
        const living = [...daemons.values()].filter(
          (each) => each.counts && tables.members.get(each.name)?.alive,
        );
        for (const each of living) each.busy.clear();
        await settle(living);
        const held = living.flatMap(({ works }) => [...works]);
        expect(held.toSorted(), JSON.stringify(steps)).to.deep.equal(queues);
        for (const { works } of living)
          expect(works.size).to.be.at.most(Math.ceil(queues.length / living.length));
        expect([...tables.shares.keys()].flatMap((item) => queueOf(item) ?? []).toSorted()).to.deep.equal(
          queues,
        );
      }),
    );
  });
});

import { createHash } from 'node:crypto';
import type { Step } from '../../agents/queue-runtime.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Member, ShareStore } from '../../store/shares.ts';
import type { Clock } from '../../util/clock.ts';
import { factoryItem, queueItem, queueOf, sourceItem } from './item-names.ts';
import { groupedItems, type Item, planShares } from './plan-shares.ts';

export interface SharingParts {
  readonly store: ShareStore;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** How long a daemon keeps what it just got before it gives it on, ms: nothing goes to and fro while daemons come and go. */
  readonly keepFor: number;
  /** Stops work on these. @returns those that stay here, since a call for them is under way, or the life of a source goes on */
  readonly release: (items: ReadonlySet<string>) => Promise<ReadonlySet<string>>;
  /** Works on what is held now. @param fresh what this daemon did not have before */
  changed(fresh: ReadonlySet<string>): Promise<void>;
  /** Does nothing outside of tests. */
  readonly step: (step: Step) => void;
}

/**
 * The part of a factory that this daemon has, while others have the rest. Each daemon looks for itself who is there and who has
 * what, plans as all others do, gives away what others are to have, and takes what none has. The database alone decides who
 * has something.
 */
export class Sharing {
  readonly #parts: SharingParts;
  /** The items that this daemon works on, and when it got them, monotonic ms. */
  readonly #held = new Map<string, number>();
  #queues: ReadonlySet<string> = new Set();
  #items: readonly Item[] = [];
  /** Items of queues that the files name, ready or not. */
  #named: ReadonlySet<string> = new Set();
  /** Whether the files could be read: else nothing is taken, and nothing is over. */
  #isWhole = false;
  #digest = '';
  #known: string | undefined;
  #members: readonly Member[] = [];
  /** All queues that some daemon has. */
  #shared: readonly string[] = [];
  #lookedAt = -Infinity;
  /** Since when this daemon has looked without a gap, monotonic ms. */
  #steadySince = 0;

  constructor(parts: SharingParts) {
    this.#parts = parts;
  }

  /** The name of this daemon. */
  get member(): string {
    return this.#parts.store.member;
  }

  /** The queues that this daemon works on. */
  get queues(): ReadonlySet<string> {
    return this.#queues;
  }

  /** All other queues of the factory: other daemons have them, or none has them yet. */
  get queuesElsewhere(): ReadonlySet<string> {
    const all = [...this.#items.flatMap(({ name }) => queueOf(name) ?? []), ...this.#shared];
    return new Set(all.filter((queue) => !this.#queues.has(queue)));
  }

  /** What all queues of the factory have in common with others; the names of their connections are among it. */
  get keys(): ReadonlySet<string> {
    return new Set(this.#items.flatMap(({ keys }) => keys));
  }

  /** Whether what is done once for a factory is done here. */
  get holdsFactory(): boolean {
    return this.#held.has(factoryItem);
  }

  /** Whether a source lives here. @param perQueue its queues may be on any machine */
  holdsSource(kind: string, perQueue: boolean): boolean {
    return perQueue ? this.holdsFactory : this.#held.has(sourceItem(kind));
  }

  /**
   * All that is shared out from now on, by the files and by what has workers. @param named the queues in the files, ready or not;
   * undefined: the files could not be read
   */
  use(items: readonly Item[], fromFiles: readonly Item[], named: readonly string[] | undefined): void {
    this.#isWhole = named !== undefined;
    if (named !== undefined) this.#named = new Set(named.map(queueItem));
    const fresh = new Set(items.map(({ name }) => name));
    // A queue that has a mistake now goes on as it was.
    const isKept = ({ name }: Item) => !fresh.has(name) && (named === undefined || this.#named.has(name));
    this.#items = [...items, ...this.#items.filter(isKept)];
    this.#digest = named === undefined ? '' : digestOf(fromFiles);
  }

  /** Takes what is this daemon's by now, before anything runs. */
  async begin(): Promise<void> {
    this.#hold((await this.#look()).gained);
  }

  /** Looks who has what, and brings this daemon in line with it. */
  async pass(): Promise<void> {
    const { gained, leaving, over } = await this.#look();
    if (leaving.size > 0 || over.length > 0) await this.#leave(leaving, over);
    if (gained.length === 0) return;
    this.#parts.log.info('has more to work on', named(gained));
    this.#hold(gained);
    this.#parts.step('share:before-work');
    try {
      await this.#parts.changed(new Set(gained));
    } catch (error) {
      // The next pass gains them again.
      this.#drop(gained);
      throw error;
    }
  }

  /** @param over what is shared out no more */
  async #leave(leaving: ReadonlyMap<string, string>, over: readonly string[]): Promise<void> {
    const { store, log, release, step } = this.#parts;
    const going = [...leaving.keys(), ...over];
    this.#drop(going);
    const busy = await release(new Set(going));
    // Whole groups: what shares a limit with a queue that stays must not be elsewhere.
    const groups = groupedItems(this.#items).map((group) => group.map(({ name }) => name));
    const stays = [...busy, ...groups.filter((group) => group.some((item) => busy.has(item))).flat()];
    for (const [to, items] of Map.groupBy(going, (item) => leaving.get(item))) {
      const goes = items.filter((item) => !stays.includes(item));
      if (goes.length === 0) continue;
      step('share:before-give');
      await (to === undefined ? store.forget(goes) : store.give(goes, to));
      step('share:after-give');
      log.info(to === undefined ? 'has less to work on' : 'gives some of its work to another daemon', {
        ...(to !== undefined && { to }),
        ...named(goes),
      });
    }
  }

  async #look(): Promise<{ gained: string[]; leaving: ReadonlyMap<string, string>; over: string[] }> {
    const { store, clock, keepFor } = this.#parts;
    if (this.#known !== this.#digest) {
      await store.know(this.#digest);
      this.#known = this.#digest;
    }
    const now = clock.monotonic();
    // A daemon that was cut off may see others as gone that only were cut off, too.
    if (now - this.#lookedAt > keepFor) this.#steadySince = now;
    const isSteady = now - this.#steadySince >= keepFor;
    this.#members = await store.members();
    const shares = await store.all();
    // A look that the database did not answer is a gap.
    this.#lookedAt = now;
    this.#shared = shares.flatMap(({ item }) => queueOf(item) ?? []);
    const holders = new Map(shares.map(({ item, member }) => [item, member]));
    const planned = planShares({
      items: this.#items,
      members: this.#partners(),
      holders,
      apart: this.#apart(),
    });
    const wanted = this.#items.filter(({ name, bound }) => {
      const holder = holders.get(name);
      if (!this.#isWhole || planned.get(name) !== this.member || holder === this.member) return false;
      return holder === undefined || (bound !== true && isSteady && !this.#isAlive(holder));
    });
    const taken = await this.#take(wanted);
    const mine = shares.flatMap(({ item, member }) => (member === this.member ? [item] : []));
    const known = new Set(this.#items.map(({ name }) => name));
    const leaving = new Map<string, string>();
    for (const item of mine) {
      const to = planned.get(item);
      const since = this.#held.get(item);
      if (since === undefined || clock.monotonic() - since < keepFor) continue;
      if (to !== undefined && to !== this.member && this.#isAlive(to)) leaving.set(item, to);
    }
    return {
      gained: [...mine, ...taken].filter((item) => known.has(item) && !this.#held.has(item)),
      leaving,
      over: this.#isWhole ? mine.filter((item) => !known.has(item) && !this.#named.has(item)) : [],
    };
  }

  async #take(wanted: readonly Item[]): Promise<readonly string[]> {
    const { store, step } = this.#parts;
    if (wanted.length === 0) return [];
    step('share:before-take');
    const taken = await store.take(wanted.map(({ name }) => name));
    step('share:after-take');
    return [...taken];
  }

  /** The daemons that are there and know other queues, or do not say yet. */
  #apart(): ReadonlySet<string> {
    const partners = new Set(this.#partners());
    return new Set(this.#members.flatMap(({ name, alive }) => (alive && !partners.has(name) ? [name] : [])));
  }

  /** The daemons that know the same queues: while files differ, each keeps what it has. */
  #partners(): string[] {
    const alike = this.#members.filter(({ alive, knows }) => alive && knows === this.#digest);
    return [...new Set([this.member, ...alike.map(({ name }) => name)])].sort();
  }

  #isAlive(member: string): boolean {
    return this.#members.some(({ name, alive }) => name === member && alive);
  }

  #hold(items: readonly string[]): void {
    for (const item of items) this.#held.set(item, this.#parts.clock.monotonic());
    this.#queues = new Set([...this.#held.keys()].flatMap((item) => queueOf(item) ?? []));
  }

  #drop(items: readonly string[]): void {
    for (const item of items) this.#held.delete(item);
    this.#hold([]);
  }
}

/** The same on two machines whose files say the same: keys, which name places of a machine, count as what they hold together. */
function digestOf(items: readonly Item[]): string {
  const groups = groupedItems(items).map((group) =>
    group.map(({ name, owner, bound }) => [name, owner, bound]),
  );
  const text = JSON.stringify(groups.map((group) => JSON.stringify(group)).toSorted());
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

function named(items: readonly string[]) {
  return { items: items.slice(0, 10), count: items.length };
}

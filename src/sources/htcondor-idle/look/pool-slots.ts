import {
  type AdText,
  closureOf,
  isTrue,
  numberIn,
  referencesIn,
  stringIn,
} from '../../../clients/htcondor/ad-text.ts';
import { classAdName, whereIs } from '../../../clients/htcondor/classad.ts';
import type { Pool } from '../../../clients/htcondor/pool-client.ts';
import type { Resources, Space } from '../model.ts';
import { sign, type Signed } from './answers.ts';

/** A slot of the pool that is none of our workers'. */
interface PoolSlot {
  readonly name: string;
  readonly oneJob: boolean;
  readonly isFree: boolean;
  readonly free: Resources;
  readonly whole: Resources;
  /** Attributes by which jobs tell it from others, and by which it tells jobs apart; amounts left out. */
  readonly ad: AdText;
}

/** Slots that match the same jobs. */
export interface SlotKind {
  readonly kind: string;
  /** To be asked about: with the most that any of them has of each resource. */
  readonly signed: Signed;
  /** What each has when it is empty. */
  readonly wholes: readonly Resources[];
}

export interface PoolSlots {
  readonly spaces: readonly Space[];
  readonly kinds: readonly SlotKind[];
  /** Slots of kinds that are left out because there are too many. */
  readonly leftOut: number;
  /** Attributes of jobs for which slots look. */
  readonly foreign: ReadonlySet<string>;
}

/** Kinds of slots that are asked about: each is a command for all new jobs. The negotiator has tried the slots of the others anyway. */
const mostKinds = 100;

const conditions = ['requirements', 'start', 'withinresourcelimits'];

/** A startd compares requests with amounts there and nowhere else, unless an administrator writes so. */
const comparesAmounts = new Set(['withinresourcelimits']);

const usual = [
  ...['Name', 'State', 'PartitionableSlot', 'DynamicSlot', 'Draining', 'Offline', 'MachineResources'],
  ...['Requirements', 'Start', 'WithinResourceLimits'],
  ...['Cpus', 'Memory', 'Disk', 'GPUs', 'TotalSlotCpus', 'TotalSlotMemory', 'TotalSlotDisk', 'TotalSlotGPUs'],
];

/** Attributes beside the usual ones that are asked for. */
const mostAttributes = 300;

/**
 * The slots of the pool without our own workers, in kinds. Two slots are of one kind if no condition, neither theirs nor one of a waiting job,
 * can tell them apart but by how much they have left; for that the packing sees to.
 */
export class SlotReader {
  readonly #pool: Pool;
  readonly #factoryId: string;
  /** Attributes that conditions rested on in the last look, lower case: the next one asks for them at once. */
  #known: ReadonlySet<string> = new Set();

  /** @param factoryId empty: no slot is ours */
  constructor(pool: Pool, factoryId: string) {
    this.#pool = pool;
    this.#factoryId = factoryId;
  }

  /**
   * @param wanted attributes of slots that jobs look for
   * @param byAmount resources that a condition of a job compares otherwise than with its own request
   * @throws HTCondorError
   */
  async read(
    wanted: ReadonlySet<string>,
    byAmount: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<PoolSlots> {
    const question = { constraint: ['DynamicSlot =!= true', ...notOurs(this.#factoryId)].join(' && ') };
    for (let round = 1; ; round++) {
      const asked = this.#known;
      const attributes = [...new Set([...usual, ...asked])].map(classAdName);
      const foreign = new Set<string>();
      const sensitive = new Set(byAmount);
      const ads = await this.#pool.adTexts('slots', { ...question, attributes }, (ad) => ad, signal);
      const own = new Set<string>();
      for (const ad of ads) this.#follow(ad, own, foreign, sensitive);
      // What slots rest on comes first: a user's jobs may look for any number of names.
      this.#known = new Set([...own, ...foreign, ...wanted].filter(isName).slice(0, mostAttributes));
      if ([...this.#known].every((name) => asked.has(name)) || round === 3) {
        const relevant = new Set([...this.#known, ...wanted, ...conditions]);
        return kindsOf(ads, { relevant, sensitive, foreign });
      }
    }
  }

  /** @param foreign attributes of jobs, and of its own that were not asked for */
  #follow(ad: AdText, rests: Set<string>, foreign: Set<string>, sensitive: Set<string>): void {
    const { own, other } = closureOf(ad, conditions);
    for (const name of own) rests.add(name);
    for (const name of other) foreign.add(name);
    const resources = resourcesOf(ad);
    const byHand = closureOf(ad, ['requirements', 'start'], comparesAmounts).own;
    for (const name of resources) if (byHand.has(name)) sensitive.add(name);
  }
}

const isName = (name: string) => /^[a-z_]\w{0,99}$/.test(name);

/** Without a factory every slot is one of the pool. Machines of fixed workers name the empty factory: they are no one's own. */
const notOurs = (factoryId: string) =>
  factoryId === '' ? [] : [whereIs('ThresherFactory', factoryId).replace('=?=', '=!=')];

/** Resources that a job's condition compares otherwise than with its own request: `TARGET.Memory >= 4000`. */
export function amountsCompared(requirements: string, resources: readonly string[]): string[] {
  const rest = requirements.replaceAll(/\bTARGET\.(\w+)\s*>=\s*(?:MY\.)?Request\1\b/gi, 'true');
  const { own, target } = referencesIn(rest);
  return resources.filter((name) => own.has(name) || target.has(name));
}

const standard = ['cpus', 'memory', 'disk', 'gpus'];

function resourcesOf(ad: AdText): string[] {
  const listed = (stringIn(ad, 'machineresources') ?? '').toLowerCase().split(/\s+/);
  return [...new Set([...standard, ...listed])].filter((name) => /^[a-z_]\w*$/.test(name) && name !== 'swap');
}

interface Telling {
  readonly relevant: ReadonlySet<string>;
  readonly sensitive: ReadonlySet<string>;
  readonly foreign: ReadonlySet<string>;
}

function kindsOf(ads: readonly AdText[], { relevant, sensitive, foreign }: Telling): PoolSlots {
  const slots = ads.flatMap((ad) => slotOf(ad, relevant) ?? []);
  const free = Map.groupBy(
    slots.filter(({ isFree }) => isFree),
    (slot) => kindText(slot, slot.free, sensitive),
  );
  const whole = Map.groupBy(slots, (slot) => kindText(slot, slot.whole, sensitive));
  // A kind of free slots that is one of whole slots as well is asked about once, with the larger amounts.
  const all = [...new Set([...whole.keys(), ...free.keys()])];
  const kept = all
    .toSorted((one, other) => (free.get(other)?.length ?? 0) - (free.get(one)?.length ?? 0))
    .slice(0, mostKinds);
  const names = new Map<string, string>();
  const kinds = kept.map((text): SlotKind => {
    const members = [...(whole.get(text) ?? []), ...(free.get(text) ?? [])];
    const exact = [...sensitive].flatMap((name): [string, number][] => {
      const one = members[0];
      const amounts = whole.has(text) ? one?.whole : one?.free;
      return [[name, amounts?.get(name) ?? 0]];
    });
    const most = new Map<string, number>();
    for (const { whole: amounts } of members)
      for (const [name, amount] of amounts) most.set(name, Math.max(amount, most.get(name) ?? 0));
    for (const [name, amount] of exact) most.set(name, amount);
    const signed = sign(
      new Map([...(members[0]?.ad ?? []), ...[...most].map(([name, n]): [string, string] => [name, `${n}`])]),
    );
    const kind = `slots:${signed.signature}`;
    names.set(text, kind);
    return { kind, signed, wholes: (whole.get(text) ?? []).map(({ whole: amounts }) => amounts) };
  });
  const spaces = [...free].flatMap(([text, members]) => {
    const kind = names.get(text);
    if (kind === undefined) return [];
    return members.map(({ name, free: amounts, oneJob }): Space => ({
      name,
      kind,
      free: amounts,
      oneJob,
      shape: undefined,
    }));
  });
  const leftOut = slots.filter((slot) => slot.isFree).length - spaces.length;
  return { spaces, kinds, leftOut: leftOut + (all.length - kept.length), foreign };
}

function slotOf(ad: AdText, relevant: ReadonlySet<string>): PoolSlot | undefined {
  const name = stringIn(ad, 'name');
  if (name === undefined) return undefined;
  const oneJob = !isTrue(ad, 'partitionableslot');
  const free = new Map<string, number>();
  const whole = new Map<string, number>();
  for (const resource of resourcesOf(ad)) {
    const has = numberIn(ad, resource);
    // A resource of which nothing is left is a bound; one that the slot does not count is none.
    if (has === undefined) continue;
    free.set(resource, has);
    whole.set(resource, Math.max(has, numberIn(ad, `totalslot${resource}`) ?? 0));
  }
  const amounts = new Set(resourcesOf(ad).flatMap((one) => [one, `totalslot${one}`]));
  const own = [...ad].filter(([attribute]) => relevant.has(attribute) && !amounts.has(attribute));
  const leaves = isTrue(ad, 'draining') || isTrue(ad, 'offline');
  const isFree = !leaves && stringIn(ad, 'state') === 'Unclaimed' && (free.get('cpus') ?? 0) > 0;
  return { name, oneJob, isFree, free, whole, ad: new Map(own) };
}

/** Equal for slots of one kind. */
function kindText({ ad, oneJob }: PoolSlot, amounts: Resources, sensitive: ReadonlySet<string>): string {
  const exact = [...sensitive].toSorted().map((name) => `${name}:${amounts.get(name) ?? 0}`);
  const lines = [...ad].map(([name, value]) => `${name}=${value}`).toSorted();
  return [oneJob ? 'static' : 'partitionable', ...exact, ...lines].join('\n');
}

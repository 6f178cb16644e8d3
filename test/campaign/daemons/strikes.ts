import { setTimeout as sleep } from 'node:timers/promises';
import type { Cut } from '../../support/postgresql-proxy.ts';
import { until } from '../../support/until.ts';
import type { Dice } from '../dice.ts';
import { type Bed, leaseDuration } from './bed.ts';
import type { Machine } from './machine.ts';

/** One way to harm the daemons. It comes back when it is over. */
export interface Strike {
  readonly name: string;
  /** How often it is chosen, beside the others. */
  readonly weight: number;
  /** Daemons that it kills. */
  readonly kills?: number;
  make(dice: Dice): Promise<void>;
}

/** Longer than a lease, ms: another daemon takes over meanwhile. */
export const beyondLease = (dice: Dice) => leaseDuration * 1000 + dice.between(1500, 3500);
/** Shorter than a lease, ms. */
export const withinLease = (dice: Dice) => dice.between(200, leaseDuration * 1000 - 1500);
/** How long a strike waits for its moment, ms. In a factory where no daemon works it may not come. */
export const patience = 10_000;

/** The moments of a working daemon that are the most dangerous ones. The proxy sees them before the server does. */
export const moments = {
  intents: /^INSERT INTO "workers"/,
  outcomes: /UPDATE workers SET status/,
  commit: /; COMMIT$/,
} as const;

export const cuts: readonly (readonly [name: string, cut: Cut])[] = [
  ['the answer to a commit is lost', { statement: moments.commit, when: 'after' }],
  [
    'the answer to the commit of intents is lost',
    { statement: moments.commit, when: 'after', following: moments.intents },
  ],
  ['a commit never arrives', { statement: moments.commit, when: 'before' }],
  ['the outcomes never arrive', { statement: moments.outcomes, when: 'before' }],
];

export const anyOf = ({ machines }: Pick<Bed, 'machines'>, dice: Dice): Machine => {
  const machine = dice.pick(machines);
  if (machine === undefined) throw new Error('there are no machines');
  return machine;
};

/** Strikes that are the same however daemons divide the work. */
export function commonStrikes(bed: Bed): readonly Strike[] {
  return [
    { name: 'PostgreSQL is restarted', weight: 1, make: (dice) => restart(bed, 'fast', dice) },
    { name: 'PostgreSQL crashes', weight: 1, make: (dice) => restart(bed, 'immediate', dice) },
    {
      name: 'workers are killed by command',
      weight: 2,
      make: async (dice) => {
        const alive = (await bed.rows()).filter(({ ended }) => ended === null);
        const victims = alive.filter(() => dice.throw() < 0.5).map(({ id }) => String(id));
        if (victims.length > 0) bed.startCommand('kill', ...victims);
      },
    },
    {
      name: 'the network parts a daemon and the database for a moment',
      weight: 2,
      make: async (dice) => part(anyOf(bed, dice), dice.between(200, 2500)),
    },
    {
      name: 'all connections of a daemon are cut',
      weight: 2,
      make: async (dice) => {
        anyOf(bed, dice).link.cutting.cutAll();
      },
    },
  ];
}

async function restart({ server }: Bed, how: 'fast' | 'immediate', dice: Dice): Promise<void> {
  await server.stop(how);
  await sleep(dice.between(0, 2000));
  await server.start();
}

export async function part({ link }: Machine, ms: number): Promise<void> {
  link.silent.silence();
  await sleep(ms);
  link.silent.heal();
}

export async function standStill({ service }: Machine, ms: number): Promise<void> {
  const goOn = service.pause();
  await sleep(ms);
  goOn();
}

/** Does this to the first of these that sends such a statement, at that moment. @returns what it gave; undefined if none sent one in time */
export async function atStatement<T>(
  machines: readonly Machine[],
  moment: RegExp,
  act: (machine: Machine) => T,
): Promise<T | undefined> {
  let done: { readonly value: T } | undefined;
  for (const machine of machines)
    machine.link.cutting.onStatement = (text) => {
      if (moment.test(text)) done ??= { value: act(machine) };
    };
  await until('it was done', () => done !== undefined, patience).catch(() => undefined);
  for (const { link } of machines) link.cutting.onStatement = () => undefined;
  return done?.value;
}

/** Lets creations of Jobs arrive late, and does this while one of them is held. */
export async function withLateCreations(
  { api }: Bed,
  ms: number,
  dice: Dice,
  work: () => Promise<void>,
): Promise<void> {
  const late = sleep(ms);
  const held = api.inject({
    verb: 'create',
    resource: 'jobs',
    times: dice.between(1, 3),
    fault: { kind: 'late', until: late },
  });
  await until('a creation is held', () => held.hits > 0, patience).catch(() => undefined);
  await work();
  await late;
  held.remove();
}

/** Cuts a connection of this machine where it is told to. */
export async function cutOnce({ link: { cutting } }: Machine, cut: Cut): Promise<void> {
  const before = cutting.cuts;
  cutting.cutAt(cut);
  await until('it was cut', () => cutting.cuts > before, patience).catch(() => undefined);
}

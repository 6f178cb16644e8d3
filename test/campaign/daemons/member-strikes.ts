import { setTimeout as sleep } from 'node:timers/promises';
import type { Cut } from '../../support/postgresql-proxy.ts';
import { until } from '../../support/until.ts';
import type { Dice } from '../dice.ts';
import { type Bed, leaseDuration } from './bed.ts';
import type { Machine } from './machine.ts';
import {
  anyOf,
  atStatement,
  beyondLease,
  commonStrikes,
  cutOnce,
  cuts,
  moments,
  part,
  patience,
  standStill,
  type Strike,
  withinLease,
  withLateCreations,
} from './strikes.ts';

/** The two statements by which a queue goes from one member to another. */
const moves = {
  take: /INSERT INTO shares/,
  give: /UPDATE shares SET member/,
} as const;

/** Whatever befalls a member while it moves a queue. */
interface AtMove {
  readonly name: string;
  readonly kills?: number;
  /** Done to the member at that moment. @returns what is done afterwards */
  readonly act: (machine: Machine) => (dice: Dice) => Promise<void>;
}

const atMoves: readonly AtMove[] = [
  {
    name: 'is killed',
    kills: 1,
    act: ({ service }) => {
      const killed = service.kill();
      return () => killed;
    },
  },
  {
    name: 'stands still beyond its lease',
    act: ({ service }) => {
      const goOn = service.pause();
      return async (dice) => {
        await sleep(beyondLease(dice));
        goOn();
      };
    },
  },
  {
    name: 'is parted from the database beyond its lease',
    act: (machine) => {
      machine.link.silent.silence();
      return async (dice) => part(machine, beyondLease(dice));
    },
  },
];

const lostAnswers: readonly (readonly [name: string, cut: Cut])[] = Object.entries(moves).flatMap(
  ([move, following]) => [
    [`the answer to a ${move} is lost`, { statement: moments.commit, when: 'after', following }] as const,
    [`a ${move} never arrives`, { statement: moments.commit, when: 'before', following }] as const,
  ],
);

/** All that a campaign does to daemons that share queues out. */
export function memberStrikes(bed: Bed): readonly Strike[] {
  const any = (dice: Dice) => anyOf(bed, dice);

  /** Longer than others need to take what a member had. */
  const awayAfterKill = (dice: Dice) => leaseDuration * 1000 + dice.between(500, 3000);
  const awayAfterStop = (dice: Dice) => dice.between(1000, 3000);

  /** A member leaves and comes back: others take its queues, and give it some again. */
  async function rebalance(dice: Dice): Promise<void> {
    await any(dice).service.stop(awayAfterStop(dice));
  }

  return [
    ...commonStrikes(bed),
    { name: 'a member is killed', weight: 3, kills: 1, make: async (dice) => any(dice).service.kill() },
    {
      name: 'a member is killed, and stays away',
      weight: 5,
      kills: 1,
      make: async (dice) => any(dice).service.kill(awayAfterKill(dice)),
    },
    {
      name: 'all members are killed',
      weight: 2,
      kills: 3,
      make: async () => {
        await Promise.all(bed.machines.map(({ service }) => service.kill()));
      },
    },
    {
      name: 'a member is killed, and then one that takes over',
      weight: 3,
      kills: 2,
      make: async (dice) => {
        const first = any(dice);
        await first.service.kill(awayAfterKill(dice));
        const others = bed.machines.filter((machine) => machine !== first);
        // In the take-over, or just before or after it.
        await sleep(dice.between(leaseDuration * 1000 - 1000, leaseDuration * 1000 + 2000));
        await dice.pick(others)?.service.kill();
      },
    },
    {
      name: 'a member stands still beyond its lease',
      weight: 3,
      make: async (dice) => standStill(any(dice), beyondLease(dice)),
    },
    ...Object.entries(moments).map(([name, moment]) => ({
      name: `a member stands still beyond its lease, at its ${name}`,
      weight: 2,
      make: async (dice: Dice) => {
        const goOn = await atStatement([any(dice)], moment, ({ service }) => service.pause());
        await sleep(beyondLease(dice));
        goOn?.();
      },
    })),
    {
      name: 'a member stands still for less than its lease',
      weight: 1,
      make: async (dice) => standStill(any(dice), withinLease(dice)),
    },
    {
      name: 'two members stand still beyond their leases, and go on at once',
      weight: 2,
      make: async (dice) => {
        const other = any(dice);
        const still = bed.machines.filter((machine) => machine !== other);
        const ms = beyondLease(dice);
        await Promise.all(still.map((machine) => standStill(machine, ms)));
      },
    },
    {
      name: 'the network parts a member and the database beyond its lease',
      weight: 3,
      make: async (dice) => part(any(dice), beyondLease(dice)),
    },
    ...cuts.map(([name, cut]) => ({
      name,
      weight: 1,
      make: async (dice: Dice) => cutOnce(any(dice), cut),
    })),
    {
      name: 'creations of Jobs arrive late, and a member is killed',
      weight: 3,
      kills: 1,
      make: async (dice) =>
        withLateCreations(bed, dice.between(1000, leaseDuration * 1000 + 3000), dice, async () =>
          any(dice).service.kill(awayAfterKill(dice)),
        ),
    },
    { name: 'a member is stopped', weight: 1, make: async (dice) => any(dice).service.stop() },
    { name: 'a member is stopped, and stays away', weight: 4, make: rebalance },
    {
      name: 'two members are stopped, and stay away',
      weight: 2,
      make: async (dice) => {
        const [first, second] = [any(dice), any(dice)];
        await Promise.all([first, second].map(({ service }) => service.stop(awayAfterStop(dice))));
      },
    },
    {
      name: 'creations of Jobs are slow while queues move',
      weight: 4,
      make: async (dice) => {
        const slow = bed.api.inject({
          verb: 'create',
          resource: 'jobs',
          fault: { kind: 'delay', ms: dice.between(500, 2500) },
        });
        await rebalance(dice);
        await atStatement(bed.machines, moves.give, () => undefined);
        slow.remove();
      },
    },
    ...Object.entries(moves).flatMap(([move, moment]) =>
      atMoves.map(({ name, kills, act }) => ({
        name: `a member ${name} at a ${move}`,
        weight: 1,
        ...(kills !== undefined && { kills }),
        make: async (dice: Dice) => {
          await rebalance(dice);
          const after = await atStatement(bed.machines, moment, act);
          await after?.(dice);
        },
      })),
    ),
    ...lostAnswers.map(([name, cut]) => ({
      name,
      weight: 1,
      make: async (dice: Dice) => {
        const cutting = bed.machines.map(({ link }) => link.cutting);
        const before = cutting.reduce((sum, { cuts: made }) => sum + made, 0);
        for (const one of cutting) one.cutAt(cut);
        await rebalance(dice);
        const isCut = () => cutting.reduce((sum, { cuts: made }) => sum + made, 0) > before;
        await until('it was cut', isCut, patience).catch(() => undefined);
        for (const one of cutting) one.leave();
      },
    })),
  ];
}

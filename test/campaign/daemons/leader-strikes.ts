import { setTimeout as sleep } from 'node:timers/promises';
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

/** All that a campaign does to a leader and its standby. */
export function leaderStrikes(bed: Bed): readonly Strike[] {
  /** The daemon that leads, or soon will; one of them by chance where none does. */
  const leader = async (dice: Dice): Promise<Machine> => {
    const chance = anyOf(bed, dice);
    return until('a daemon leads', () => leaderOf(bed), patience).catch(() => chance);
  };
  const otherThan = (machine: Machine): Machine => bed.machines.find((one) => one !== machine) ?? machine;
  const standby = async (dice: Dice) => otherThan(await leader(dice));

  return [
    ...commonStrikes(bed),
    {
      name: 'the leader is killed',
      weight: 6,
      kills: 1,
      make: async (dice) => (await leader(dice)).service.kill(),
    },
    {
      name: 'the standby is killed',
      weight: 2,
      kills: 1,
      make: async (dice) => (await standby(dice)).service.kill(),
    },
    {
      name: 'both are killed',
      weight: 2,
      kills: 2,
      make: async () => {
        await Promise.all(bed.machines.map(({ service }) => service.kill()));
      },
    },
    {
      name: 'one after the other is killed',
      weight: 2,
      kills: 2,
      make: async (dice) => {
        const first = await leader(dice);
        await first.service.kill();
        // In the take-over, or just before or after it.
        await sleep(dice.between(leaseDuration * 1000 - 1500, leaseDuration * 1000 + 1500));
        await otherThan(first).service.kill();
      },
    },
    {
      name: 'the leader stands still beyond its lease',
      weight: 4,
      make: async (dice) => standStill(await leader(dice), beyondLease(dice)),
    },
    ...Object.entries(moments).map(([name, moment]) => ({
      name: `the leader stands still beyond its lease, at its ${name}`,
      weight: 2,
      make: async (dice: Dice) => {
        const goOn = await atStatement([await leader(dice)], moment, ({ service }) => service.pause());
        await sleep(beyondLease(dice));
        goOn?.();
      },
    })),
    {
      name: 'the leader stands still for less than its lease',
      weight: 1,
      make: async (dice) => standStill(await leader(dice), withinLease(dice)),
    },
    {
      name: 'the network parts the leader and the database beyond its lease',
      weight: 3,
      make: async (dice) => part(await leader(dice), beyondLease(dice)),
    },
    {
      name: 'the network parts the standby and the database, and the leader is killed',
      weight: 1,
      kills: 1,
      make: async (dice) => {
        const first = await leader(dice);
        await Promise.all([
          part(otherThan(first), dice.between(1000, beyondLease(dice))),
          sleep(dice.between(0, 1000)).then(() => first.service.kill()),
        ]);
      },
    },
    ...cuts.map(([name, cut]) => ({
      name,
      weight: 2,
      make: async (dice: Dice) => cutOnce(await leader(dice), cut),
    })),
    {
      name: 'creations of Jobs arrive late, and the leader is killed',
      weight: 3,
      kills: 1,
      make: async (dice) =>
        withLateCreations(bed, dice.between(1000, leaseDuration * 1000 + 3000), dice, async () =>
          (await leader(dice)).service.kill(),
        ),
    },
    { name: 'the leader is stopped', weight: 2, make: async (dice) => (await leader(dice)).service.stop() },
    { name: 'the standby is stopped', weight: 1, make: async (dice) => (await standby(dice)).service.stop() },
  ];
}

/** The machine whose daemon has the lease; undefined while there is none, or the database does not say. */
async function leaderOf(bed: Bed): Promise<Machine | undefined> {
  const rows = await bed.ask<{ pid: number }>(
    `SELECT substring(holder FROM 'pid (\\d+)$')::int AS pid FROM leases WHERE expires_at > clock_timestamp()`,
  );
  return bed.machines.find(({ service }) => service.pid === rows[0]?.pid);
}

import type { Pool } from '../../../clients/htcondor/pool-client.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Need } from '../model.ts';
import type { Unknown } from './result.ts';

/** Limits that are asked about. */
const mostLimits = 500;

/**
 * Names of the limits that jobs have, those of one owner after another's: however many somebody makes up, they keep nobody else's from being
 * asked about. A need counts for the owner of most of its jobs.
 */
export function limitsInTurns(needs: readonly Need[]): string[] {
  const byOwner = new Map<string, Set<string>>();
  for (const { concurrency, owners } of needs) {
    if (concurrency.size === 0) continue;
    const [owner] = [...owners].reduce((most, one) => (one[1] > most[1] ? one : most), ['', 0]);
    const own = byOwner.get(owner) ?? new Set();
    byOwner.set(owner, own);
    for (const name of concurrency.keys()) own.add(name);
  }
  const names = new Set<string>();
  for (let open = [...byOwner.values()].map((own) => own.values()); open.length > 0;) {
    open = open.filter((own) => {
      const { value, done } = own.next();
      if (value !== undefined) names.add(value);
      return done !== true;
    });
  }
  return [...names];
}

/**
 * How much of each concurrency limit is free. A negotiator says what is taken to `condor_userprio`, and the bound of a limit to
 * `condor_config_val`: `NAME_LIMIT`; for `name.sub`, `CONCURRENCY_LIMIT_DEFAULT_NAME`; else `CONCURRENCY_LIMIT_DEFAULT`. With several
 * negotiators each has its own count.
 * @param names whole lower-case names, `name` or `name.sub`
 * @returns names without a bound have no entry. Where the negotiator does not say, nothing is free: its jobs are no demand until it does.
 */
export async function freeOfLimits(
  pool: Pool,
  negotiators: ReadonlyMap<string, string>,
  names: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly free: ReadonlyMap<string, number>; readonly unknown: readonly Unknown[] }> {
  const free = new Map<string, number>();
  const asked = names.filter((name) => /^[a-z_]\w*(\.[a-z_]\w*)?$/.test(name));
  const leftOut = asked.splice(mostLimits);
  if (asked.length === 0) return { free, unknown: [] };
  try {
    const inUse = new Set(asked.map(nameInUse));
    const settings = [...new Set(asked.flatMap(settingsOf))];
    for (const [negotiator, address] of negotiators) {
      const bounds = await pool.configuration(address, settings, signal);
      const used = await pool.limitsInUse(negotiator, inUse, signal);
      for (const name of asked) {
        const bound = settingsOf(name).flatMap((setting) => bounds.get(setting) ?? [])[0];
        if (bound === undefined || !Number.isFinite(Number(bound))) continue;
        const left = Math.max(0, Number(bound) - (used.get(nameInUse(name)) ?? 0));
        free.set(name, (free.get(name) ?? 0) + left);
      }
    }
    for (const name of leftOut) free.set(name, 0);
    return { free, unknown: leftOut.length === 0 ? [] : [unasked(leftOut.length)] };
  } catch (error) {
    signal.throwIfAborted();
    return {
      free: new Map([...asked, ...leftOut].map((name) => [name, 0])),
      unknown: [{ part: 'limits', name: '', reason: toReason(error) }],
    };
  }
}

/** A negotiator says of `name.sub` what is taken of `name_sub`. */
const nameInUse = (name: string) => name.replaceAll('.', '_');

function unasked(count: number): Unknown {
  const message = `${count} concurrency limits are left out: the waiting jobs name more than the ${mostLimits} that thresher asks about, and those jobs are no demand`;
  return { part: 'limits', name: '', reason: { code: 'htcondor-idle-left-out', message } };
}

/** Settings that bound a limit, the first that is set counts. Source: `Accountant::GetLimitMax`, HTCondor 23.9. */
function settingsOf(name: string): string[] {
  const [group = ''] = name.split('.');
  return [
    `${name.toUpperCase()}_LIMIT`,
    ...(name.includes('.') ? [`CONCURRENCY_LIMIT_DEFAULT_${group.toUpperCase()}`] : []),
    'CONCURRENCY_LIMIT_DEFAULT',
  ];
}

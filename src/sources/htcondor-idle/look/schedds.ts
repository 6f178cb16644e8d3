import { HTCondorError } from '../../../clients/htcondor/errors.ts';
import type { Pool } from '../../../clients/htcondor/pool-client.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Unknown } from './result.ts';

/** A schedd that the collector knows. */
export interface KnownSchedd {
  readonly name: string;
  /** `DaemonStartTime`: numbers of autoclusters begin anew with each start. */
  readonly startedAt: number;
}

/** ms. A schedd that left the collector for longer is gone for good, and so are its jobs. */
const missedFor = 3_600_000;

/** Schedds of one look, and those that are remembered. A pool has some hundreds. */
const most = 10_000;

/** Characters of the name of a schedd; what has more is none. */
const longestName = 1000;

/** Which schedds there are, and which of them have just gone missing. */
export class ScheddList {
  readonly #named: readonly string[] | undefined;
  /** When a schedd was last in the collector, ms by a monotonic clock. */
  readonly #seen = new Map<string, number>();

  /** @param named those whose jobs count; undefined: all of the collector */
  constructor(named: readonly string[] | undefined) {
    this.#named = named;
  }

  /**
   * @param now ms, monotonic
   * @returns those that can be asked, and those that are unknown: one that a configuration names and the collector does not, and one that
   * the collector knew within the last hour. It is down or cut off, and its jobs wait in its spool.
   */
  async look(
    pool: Pool,
    now: number,
    signal: AbortSignal,
  ): Promise<{ readonly schedds: readonly KnownSchedd[]; readonly unknown: readonly Unknown[] }> {
    let schedds: KnownSchedd[];
    const wanted = new Set(this.#named);
    const read = (ad: Readonly<Record<string, unknown>>) => {
      const schedd = scheddOf(ad);
      const isWanted = schedd !== undefined && (this.#named === undefined || wanted.has(schedd.name));
      return isWanted ? schedd : undefined;
    };
    try {
      schedds = await pool.ads('schedd', { attributes: ['Name', 'DaemonStartTime'] }, read, signal);
      if (schedds.length > most) throw tooMany(schedds.length);
    } catch (error) {
      signal.throwIfAborted();
      const reason = toReason(error);
      const missing = [...new Set([...(this.#named ?? []), ...this.#seen.keys()])];
      const silent = missing.map((name): Unknown => ({ part: 'schedd', name, reason }));
      return { schedds: [], unknown: [{ part: 'collector', name: '', reason }, ...silent] };
    }
    for (const { name } of schedds) {
      // The one that was seen last is the last.
      this.#seen.delete(name);
      this.#seen.set(name, now);
    }
    for (const name of [...this.#seen.keys()].slice(0, -most)) this.#seen.delete(name);
    const present = new Set(schedds.map(({ name }) => name));
    for (const [name, at] of this.#seen) if (now - at > missedFor) this.#seen.delete(name);
    const missing = [...new Set([...wanted, ...this.#seen.keys()])].filter((name) => !present.has(name));
    return { schedds, unknown: missing.map(missingSchedd) };
  }
}

function missingSchedd(name: string): Unknown {
  const message = `the collector knows no schedd ${name}, which is named in the settings or was there within the last hour: its jobs are unknown`;
  return { part: 'schedd', name, reason: { code: 'htcondor-idle-schedd-missing', message } };
}

function tooMany(count: number): HTCondorError {
  const message = `the collector names ${count} schedds; right are ${most} at most: name in the settings those whose jobs count`;
  return new HTCondorError({ code: 'condor-answer', message, maybeDone: false });
}

function scheddOf(ad: Readonly<Record<string, unknown>>): KnownSchedd | undefined {
  const { Name: name, DaemonStartTime: startedAt } = ad;
  if (typeof name !== 'string' || name === '' || name.length > longestName) return undefined;
  return { name, startedAt: typeof startedAt === 'number' ? startedAt : 0 };
}

import type { Pool } from '../../../clients/htcondor/pool-client.ts';
import { toReason } from '../../../worker/errors.ts';
import type { Unknown } from './result.ts';

/** The last finished cycle of the negotiators of a pool. */
export interface Negotiation {
  /** Its start, s since 1970, by the clock of the negotiator. */
  readonly startedAt: number;
  /** Negotiators by name, with their `MyAddress`. */
  readonly negotiators: ReadonlyMap<string, string>;
}

/**
 * Asks when the last finished cycle began. Each negotiator is asked itself: the collector hears of a cycle up to
 * `NEGOTIATOR_UPDATE_INTERVAL` (300 s) later. With several negotiators a job has been passed over once all of them have had a cycle.
 * @param latest by address, the last start that each negotiator has told: one that is too busy to answer takes none of its cycles back
 */
export async function lastNegotiation(
  pool: Pool,
  latest: Map<string, number>,
  signal: AbortSignal,
): Promise<Negotiation | Unknown> {
  const attributes = ['Name', 'MyAddress', 'LastNegotiationCycleTime0'];
  try {
    const heard = await pool.ads('negotiator', { attributes }, (ad) => ad, signal);
    if (heard.length === 0)
      return unknown('htcondor-idle-no-negotiator', 'the collector knows no negotiator');
    const starts: number[] = [];
    const negotiators = new Map<string, string>();
    for (const ad of heard) {
      const { Name: name, MyAddress: address } = ad;
      if (typeof name !== 'string' || typeof address !== 'string') continue;
      negotiators.set(name, address);
      const said = ad['LastNegotiationCycleTime0'];
      const told = Math.max(typeof said === 'number' ? said : 0, latest.get(address) ?? 0);
      starts.push(Math.max(told, await fromItself(pool, address, signal)));
      latest.set(address, starts.at(-1) ?? told);
    }
    // A negotiator that was started again has another address.
    const present = new Set(negotiators.values());
    for (const address of latest.keys()) if (!present.has(address)) latest.delete(address);
    const startedAt = Math.min(...starts);
    if (startedAt > 0 && Number.isFinite(startedAt)) return { startedAt, negotiators };
    return unknown('htcondor-idle-no-negotiator', 'no negotiation cycle of the pool has ended yet');
  } catch (error) {
    signal.throwIfAborted();
    return { part: 'negotiator', name: '', reason: toReason(error) };
  }
}

function unknown(code: string, message: string): Unknown {
  return {
    part: 'negotiator',
    name: '',
    reason: { code, message: `${message}: no job is counted before one has passed` },
  };
}

/** ms. A negotiator that hangs may not hold up the look: what the collector has of it is minutes old at most. */
const patience = 5000;

/** 0 where it does not answer: then what the collector has of it counts. */
async function fromItself(pool: Pool, direct: string, signal: AbortSignal): Promise<number> {
  try {
    const attributes = ['LastNegotiationCycleTime0'];
    const [ad] = await pool.ads(
      'negotiator',
      { attributes, direct, timeLimit: patience },
      (ad) => ad,
      signal,
    );
    const said = ad?.['LastNegotiationCycleTime0'];
    return typeof said === 'number' ? said : 0;
  } catch {
    signal.throwIfAborted();
    return 0;
  }
}

import type pg from 'pg';
import type { Clock } from '../../util/clock.ts';
import { channel } from './migrations.ts';

/** Even in silence a daemon looks so often for what others left, ms: a connection may be gone without a sign. */
const lookAnyway = 30_000;
/** Between two attempts to connect anew, ms. */
const pause = 1000;
/** How long a notification may take, ms. */
const patience = 5000;

export interface ListenerParts {
  readonly open: () => Promise<pg.Client>;
  /** Process of the server that works for this daemon: its own writes are no news. */
  readonly ownProcess: () => number;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
}

/** Hears, on a connection of its own, that other processes wrote. It has no timer: whoever asks lets it connect again. */
export class Listener {
  readonly #parts: ListenerParts;
  #client: pg.Client | undefined;
  #connecting: Promise<void> | undefined;
  #triedAt = -Infinity;
  #lookedAt: number;
  #changed = false;
  #closed = false;
  readonly #checks = new Map<string, () => void>();

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.#lookedAt = parts.clock.monotonic();
  }

  async start(): Promise<void> {
    const client = await this.#parts.open();
    const lost = () => {
      if (this.#client === client) this.#client = undefined;
    };
    client.on('error', lost).on('end', lost);
    client.on('notification', ({ processId, payload = '' }) => {
      this.#checks.get(payload)?.();
      if (!payload.startsWith('check ') && processId !== this.#parts.ownProcess()) this.#changed = true;
    });
    try {
      await client.query(`LISTEN ${channel}`);
    } catch (error) {
      client.end().catch(() => undefined);
      throw error;
    }
    if (this.#closed) client.end().catch(() => undefined);
    else this.#client = client;
  }

  /** Whether another process wrote since the last call. */
  takeChanged(): boolean {
    const now = this.#parts.clock.monotonic();
    if (this.#client === undefined) this.#again(now);
    const changed = this.#changed || now - this.#lookedAt > lookAnyway;
    if (changed) this.#lookedAt = now;
    this.#changed = false;
    return changed;
  }

  /**
   * Whether a notification of another session comes here. A pooler that lends sessions for single transactions loses it, as
   * it would lose locks and settings.
   */
  async hears(other: pg.Client, token: string): Promise<boolean> {
    const payload = `check ${token}`;
    const heard = new AbortController();
    this.#checks.set(payload, () => {
      heard.abort();
    });
    try {
      await other.query('SELECT pg_notify($1, $2)', [channel, payload]);
      await this.#parts.clock.sleep(patience, heard.signal);
      return heard.signal.aborted;
    } finally {
      this.#checks.delete(payload);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client?.end().catch(() => undefined);
  }

  #again(now: number): void {
    if (this.#closed || this.#connecting !== undefined || now - this.#triedAt < pause) return;
    this.#triedAt = now;
    this.#connecting = this.start()
      .then(() => {
        // What came meanwhile was not heard.
        this.#changed = true;
      })
      .catch(() => undefined)
      .finally(() => {
        this.#connecting = undefined;
      });
  }
}

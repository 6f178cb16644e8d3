import type { LoadedSettings } from '../config/settings/settings.ts';
import { Standby } from '../daemon/standby.ts';
import type { Notifier } from '../daemon/supervision/notify.ts';
import type { HttpServer } from '../http/server.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { LeaseHolder } from '../store/lease-holder.ts';
import type { Clock } from '../util/clock.ts';
import { toReason } from '../worker/errors.ts';

export interface StandingParts {
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly http: Pick<HttpServer, 'open'> | undefined;
  readonly notifier: Pick<Notifier, 'ready' | 'alive'>;
}

/** Between two signs of life for the service manager, ms. */
const signEvery = 5000;

/** What a daemon shows while another one has the factory. */
export class Standing {
  readonly #parts: StandingParts;
  #leader: string | undefined;
  #signAt = -Infinity;
  #standby: Standby | undefined;
  #opening: Promise<void> | undefined;

  constructor(parts: StandingParts) {
    this.#parts = parts;
  }

  /** Somebody else has the factory: comes about each second. */
  by(leader: LeaseHolder, factoryId: string): void {
    const { clock, log, notifier } = this.#parts;
    if (this.#leader !== leader.holder) {
      log.info('standby: another daemon has the factory', { factory: factoryId, ...leader });
      // A service that waits is up: systemd must not end it for a start that takes too long.
      if (this.#leader === undefined) notifier.ready();
    }
    this.#leader = leader.holder;
    const now = clock.monotonic();
    if (now - this.#signAt >= signEvery) {
      this.#signAt = now;
      notifier.alive(`standby, the leader is ${leader.holder}`);
    }
    if (this.#standby !== undefined) this.#standby.leader = leader;
    else this.#opening ??= this.#open(leader, factoryId).finally(() => (this.#opening = undefined));
  }

  /** It has the factory now, or ends. */
  async over(): Promise<void> {
    if (this.#leader !== undefined) this.#parts.log.info('no longer a standby');
    await this.#opening;
    await this.#standby?.close();
    this.#standby = undefined;
  }

  async #open(leader: LeaseHolder, factoryId: string): Promise<void> {
    const { settings, clock, random, log, http } = this.#parts;
    if (http === undefined) return;
    try {
      const standby = await Standby.open({ settings, factoryId, clock, random }, leader);
      this.#standby = standby;
      await http.open(standby);
    } catch (error) {
      // The leader may still be making the tables: the next look tries again.
      log.debug('a standby cannot serve yet', { ...toReason(error) });
      await this.#standby?.close();
      this.#standby = undefined;
    }
  }
}

import type { LoadedSettings } from '../config/settings/settings.ts';
import type { LeaseHolder } from '../store/lease-holder.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Daemon } from './daemon.ts';
import { openBesideDaemon } from './reader.ts';
import { OperatorDesk } from './requests/operator-desk.ts';

/** All that HTTP asks of a daemon, whether it has the factory or waits for it. */
export type DaemonFace = Pick<
  Daemon,
  | 'factoryId'
  | 'health'
  | 'credentials'
  | 'services'
  | 'kindsOfLink'
  | 'waiting'
  | 'gauges'
  | 'isStopping'
  | 'askSource'
  | 'logsOf'
> & {
  readonly operatorDesk: Pick<OperatorDesk, 'ask' | 'withdraw' | 'reasonsOf'>;
  /** Who has the factory, while this daemon waits for it. */
  readonly leader?: LeaseHolder;
};

export interface StandbyParts {
  readonly settings: LoadedSettings;
  readonly factoryId: string;
  readonly clock: Clock;
  readonly random: () => number;
}

/**
 * A daemon that waits to take over. It knows what the database knows. A request that is left here goes into the database, where the
 * leader finds it. Logs and sources are the leader's.
 */
export class Standby implements DaemonFace {
  readonly factoryId: string;
  readonly operatorDesk: OperatorDesk;
  readonly health = [];
  readonly credentials = [];
  readonly services = [];
  readonly kindsOfLink: ReadonlySet<string> = new Set();
  readonly waiting = [];
  readonly gauges = [];
  readonly isStopping = false;
  leader: LeaseHolder;
  readonly #store: Store;

  /** @throws ThresherError as `openBesideDaemon`: also while the leader brings the tables up to date */
  static async open(parts: StandbyParts, leader: LeaseHolder): Promise<Standby> {
    const { store } = await openBesideDaemon(parts.settings, 'write', parts.factoryId);
    return new Standby(parts, store, leader);
  }

  private constructor({ factoryId, clock, random }: StandbyParts, store: Store, leader: LeaseHolder) {
    this.factoryId = factoryId;
    this.leader = leader;
    this.#store = store;
    this.operatorDesk = new OperatorDesk({
      store: store.requests,
      clock,
      random,
      reports: () => store.queues.all(),
      why: () => [],
      wakeSubmitter: () => undefined,
      failed: () => undefined,
    });
  }

  logsOf(): Promise<never> {
    const message = `this daemon is a standby: ask the leader, ${this.leader.holder}, for logs`;
    return Promise.reject(new ThresherError('no-log', message));
  }

  askSource(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

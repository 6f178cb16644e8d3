import type { Log, SubmitOutcome } from '../plugins/contracts/index.ts';
import { Events } from '../util/events.ts';
import { messageOf } from '../worker/errors.ts';
import type { OriginKey } from '../worker/news.ts';
import type { Observation } from '../worker/observation.ts';
import type { WorkerStatus } from '../worker/status.ts';

/** A worker's change of status, as the database has it by now. */
export interface WorkerChanged {
  readonly workerId: number;
  readonly queue: string;
  /** Undefined where the worker's row is new. */
  readonly from: WorkerStatus | undefined;
  readonly to: WorkerStatus;
  /** Why, where the change says so. */
  readonly code: string | undefined;
}

/** One pass of a loop, by the loop's name; `duration` in ms. */
export interface PassEnded {
  readonly loop: string;
  readonly duration: number;
  readonly failed: boolean;
}

/**
 * All that agents tell: to the loops that it wakes, to metrics, to the watchdog. Events are for those who may miss one. A
 * crash loses them, and a listener's failure stops nothing. So a queue's report is no event (its failure is one of the pass),
 * nor are the steps at which tests stop a daemon, nor the services beside the loops, which may refuse the start.
 */
export interface FactoryEvents {
  /** One transaction's changes of status. */
  readonly workersChanged: { readonly workers: readonly WorkerChanged[] };
  /** An operator asked for the end of these workers. */
  readonly killRequested: {
    readonly workers: readonly { readonly workerId: number; readonly queue: string }[];
  };
  /** A backend answered one call of `submit`. A worker without an outcome has an unknown fate. */
  readonly submissionAnswered: {
    readonly queue: string;
    readonly workers: readonly { readonly workerId: number }[];
    readonly outcomes: ReadonlyMap<number, SubmitOutcome>;
  };
  /** These observations are in the database by now, `at` in ms UTC. */
  readonly observationsWritten: { readonly observations: readonly Observation[]; readonly at: number };
  /** A connection is open that was closed: queues may be waiting to submit there. */
  readonly connectionOpened: { readonly connection: string };
  /** A worker with our mark was seen that is none of the living workers: a listing says whose it is. */
  readonly strangerSeen: { readonly connection: string; readonly workerId: number };
  /** A source heard that these workers end now: their monitors need not wait for their turn. */
  readonly endsExpected: { readonly workerIds: readonly number[] };
  /** A credential is good, or good for longer, that was not. */
  readonly credentialsImproved: { readonly manager: string };
  /** News of workers of these kinds are in the database by now. */
  readonly newsWritten: { readonly kinds: ReadonlySet<string> };
  /** Another process wrote into the database: an operator left commands, which are counted here, or a request. */
  readonly writtenElsewhere: { readonly commands: number };
  readonly passEnded: PassEnded;
  /** A source asked for origins that have had their worker or were withdrawn. */
  readonly originsKnown: { readonly kind: string; readonly origins: readonly OriginKey[] };
}

export type Emit = Pick<Events<FactoryEvents>, 'emit'>;
export type Subscribe = Pick<Events<FactoryEvents>, 'on'>;

export function factoryEvents(log: Log): Events<FactoryEvents> {
  return new Events((event, error) => {
    log.error('a listener of an event failed', { event, error: messageOf(error) });
  });
}

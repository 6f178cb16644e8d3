import type { Reason } from '../../worker/reason.ts';
import type { RunConfiguration } from '../configuration.ts';

/** A part of a service that operators know by a name of its own. */
export interface ServicePart {
  readonly name: string;
  /** Why it does not do its work, if so. */
  readonly trouble?: Reason | undefined;
  /** Something to know of it that keeps it from nothing. */
  readonly note?: Reason | undefined;
}

/** A part of the daemon with a life of its own. */
export interface Service {
  readonly name: string;
  /** The daemon does not start without it. Another one that cannot begin is shown as failing, and delays none. */
  readonly required: boolean;
  /** Goes on until all others have stopped: it tells of their end. */
  readonly last?: boolean;
  begin(): Promise<void>;
  /** Brings it in line with files that were read again. */
  reload?(read: RunConfiguration): Promise<void>;
  /** @param end when it is to have stopped, monotonic ms: it gives up then what it waits for */
  stop(end: number): Promise<void>;
  /** Its parts; itself where it has no others. */
  health(): readonly ServicePart[];
}

export const serviceStates = ['starting', 'up', 'failing', 'stopped'] as const;
export type ServiceState = (typeof serviceStates)[number];

/** A service, or a part of one, as `/healthz`, metrics and `thresher status` name it. */
export interface ServiceHealth {
  readonly name: string;
  readonly state: ServiceState;
  /** Since when it is in this state, ms UTC. */
  readonly since: number;
  /** Why it fails; of one that is up, something to know. */
  readonly reason?: Reason;
}

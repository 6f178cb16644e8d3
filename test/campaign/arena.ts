import type { Site } from '../support/site.ts';
import type { Dice } from './dice.ts';

/** How many workers of each queue of an arena may live at the same time. */
export const limits: Readonly<Record<string, number>> = { A: 3, B: 2 };

/** Something that goes wrong on purpose. */
export interface Fault {
  readonly name: string;
  /** How often it is chosen, beside the others. */
  readonly weight: number;
  /** Comes back when the fault is over, or has done its harm. */
  strike(dice: Dice): Promise<void>;
}

/** A worker as the backend itself shows it. The observer asks the backend, and never the database. */
export interface Seen {
  readonly workerId: number;
  readonly queue: string;
}

/** One backend under attack: a site with two queues on it, faults of its own, and an observer. */
export interface Arena extends AsyncDisposable {
  readonly site: Site;
  /** For daemons and commands. */
  readonly environment: Readonly<Record<string, string>>;
  readonly faults: readonly Fault[];
  /** What lives now. A worker that lives twice stands there twice. Undefined while the backend cannot be asked. */
  living(): Promise<readonly Seen[] | undefined>;
  /** How often each worker was started so far, also those that are gone. */
  starts(): ReadonlyMap<number, number>;
  /** Workers whose own end a fault has hidden: thresher may call these lost. */
  readonly hidden: ReadonlySet<number>;
  /** Is told of workers that a command is about to end. */
  commanded?(workerIds: readonly number[]): void;
  /** Whether its queues are full again within three minutes of the last fault. Default: yes. */
  readonly refills?: boolean;
  /** Takes back every fault. */
  heal(): Promise<void>;
  /** What else must be true once all queues are empty and everything is healed. @param breaks is told of each broken promise */
  settle?(breaks: (what: string) => void): Promise<void>;
  /** Writes the queue file. */
  writeQueues(change: Readonly<Record<string, unknown>>): void;
}

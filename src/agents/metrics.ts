import type { SubmitOutcome } from '../plugins/contracts/index.ts';
import type { Observation } from '../worker/observation.ts';
import type { FinalStatus } from '../worker/status.ts';

/** What agents tell whoever counts. Every method is called where work is done: it must be cheap and never throw. */
export interface Metrics {
  /** The outcomes of one call of `submit`; of whom there is none, nobody knows what became of it. */
  submitted(
    queue: string,
    workers: readonly { readonly workerId: number }[],
    outcomes: ReadonlyMap<number, SubmitOutcome>,
  ): void;
  /** The end of a worker is in the database; `code` is why it ended so, where it is known. */
  ended(queue: string, status: FinalStatus, code: string | undefined): void;
  /** These observations are in the database by now, ms UTC. */
  observed(observations: readonly Observation[], now: number): void;
  passDone(pass: PassDone): void;
}

/** A loop, by its name, ended a pass; `duration` in ms. */
export interface PassDone {
  readonly loop: string;
  readonly duration: number;
  readonly failed: boolean;
}

/** Where nobody counts. */
export const noMetrics: Metrics = {
  submitted: () => undefined,
  ended: () => undefined,
  observed: () => undefined,
  passDone: () => undefined,
};

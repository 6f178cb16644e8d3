import type { WaitingUids } from '../../agents/sources/waiting-board.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import type { OperatorRequest } from '../../worker/operator-request.ts';
import type { Reason } from '../../worker/reason.ts';
import type { StateDir } from '../state-dir.ts';
import { readStateFile, StateFile } from '../state-file.ts';

export interface RequestFileParts {
  readonly clock: Clock;
  readonly log: Log;
  /** The requests that wait, as the last passes left them. */
  readonly waiting: () => readonly WaitingUids[];
}

/** One queue in the file. */
interface Written {
  readonly queue: string;
  readonly failure?: Reason | undefined;
  /** Requests that wait for the same reasons, by their ids. */
  readonly groups: readonly { readonly reasons: readonly Reason[]; readonly requests: readonly string[] }[];
}

/** The file is written once in this time at most, ms: messages with numbers change often. */
const pause = 1000;

/** Writes into the state directory why requests of operators wait. */
export class RequestFile {
  readonly #file: StateFile;
  readonly #waiting: RequestFileParts['waiting'];

  constructor(dir: StateDir, { clock, log, waiting }: RequestFileParts) {
    const failure = 'the reasons of waiting requests could not be written';
    this.#file = new StateFile(dir.requests, { failure, log, pause: { clock, ms: pause } });
    this.#waiting = waiting;
  }

  /** A pass of a queue is over: other requests may wait, or for other reasons. */
  changed(): void {
    this.#file.write(() => this.#waiting().map(toWritten));
  }

  /** Comes back when the last change is written, or has failed. */
  stop(): Promise<void> {
    return this.#file.stop();
  }
}

function toWritten({ queue, failure, reasons }: WaitingUids): Written {
  const same = Map.groupBy(reasons, ([, own]) => JSON.stringify(own));
  const groups = [...same.values()].map((some) => ({
    reasons: some[0]?.[1] ?? [],
    requests: some.map(([id]) => id),
  }));
  return { queue, failure, groups };
}

/** Why a request waits, as far as the last daemon said it. */
export type WhyWaiting = (request: Pick<OperatorRequest, 'queue' | 'id'>) => readonly Reason[];

/** Reads what the daemon wrote down last; nothing where it never did, or where the file is damaged. */
export function readRequestReasons(dir: StateDir): WhyWaiting {
  const queues = readStateFile(dir.requests) as readonly Written[];
  const byId = new Map(
    queues.flatMap(({ groups }) =>
      groups.flatMap(({ reasons, requests }) => requests.map((id) => [id, reasons] as const)),
    ),
  );
  const failures = new Map(queues.map(({ queue, failure }) => [queue, failure]));
  return ({ queue, id }) => {
    const failure = failures.get(queue);
    return failure === undefined ? (byId.get(id) ?? []) : [failure];
  };
}

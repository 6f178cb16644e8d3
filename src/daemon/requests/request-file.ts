import { readFileSync } from 'node:fs';
import type { WaitingUids } from '../../agents/sources/waiting-board.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { writeFileAtomically } from '../../util/files.ts';
import { messageOf } from '../../worker/errors.ts';
import type { OperatorRequest } from '../../worker/operator-request.ts';
import type { Reason } from '../../worker/reason.ts';
import type { StateDir } from '../state-dir.ts';

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

/**
 * Writes into the state directory why requests of operators wait, where the command line reads it beside the daemon, also after its
 * end. Written only when it changed.
 */
export class RequestFile {
  readonly #path: string;
  readonly #parts: RequestFileParts;
  readonly #stop = new AbortController();
  #isStale = false;
  #written = '';
  #writing: Promise<void> | undefined;

  constructor(dir: StateDir, parts: RequestFileParts) {
    this.#path = dir.requests;
    this.#parts = parts;
  }

  /** A pass of a queue is over: other requests may wait, or for other reasons. */
  changed(): void {
    this.#isStale = true;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Comes back when the last change is written, or has failed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { clock, log, waiting } = this.#parts;
    while (this.#isStale) {
      this.#isStale = false;
      const text = `${JSON.stringify(waiting().map(toWritten))}\n`;
      if (text === this.#written) continue;
      try {
        await writeFileAtomically(this.#path, text);
        this.#written = text;
      } catch (error) {
        log.warn('the reasons of waiting requests could not be written', { error: messageOf(error) });
      }
      await clock.sleep(pause, this.#stop.signal);
    }
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
  const queues = readWritten(dir.requests);
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

function readWritten(path: string): readonly Written[] {
  try {
    const written: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return Array.isArray(written) ? (written as readonly Written[]) : [];
  } catch {
    return [];
  }
}

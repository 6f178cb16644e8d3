import { Turns } from '../../../clients/htcondor/turns.ts';
import type { LogOpts } from '../../../clients/interlink/wire.ts';
import type { SourceHost } from '../../../plugins/contracts/index.ts';
import { messageOf, ThresherError, toReason } from '../../../worker/errors.ts';
import type { Looks } from '../looks/looks.ts';
import type { Peeks } from '../looks/peeks.ts';
import type { PodFiles } from '../pods/pod-files.ts';
import type { TrackedPod } from '../pods/tracked-pod.ts';
import { Refusal } from '../refusal.ts';
import { LiveLog, type Shown } from './live-log.ts';
import { fileView, type InTurn, type LogView } from './log-view.ts';
import { type LogParts, type LogStage, readLog } from './read-log.ts';

export interface PodLogsParts {
  readonly host: Pick<SourceHost, 'clock' | 'log'>;
  readonly files: Pick<PodFiles, 'logOf' | 'outputOf'>;
  /** Absent: jobs write their logs where the daemon reads them. */
  readonly machines?: { readonly peeks: Peeks; readonly looks: Looks };
}

/** A log that is not followed is begun within this time, so that an error has a status of its own. ms */
const patience = 15_000;
/** Calls to files of logs that are under way. Node has few threads for files, and all else of the daemon shares them. */
const atOnce = 2;

/** The logs of containers: from the files of the job, or through its backend while it runs on a machine that shares none. */
export class PodLogs {
  readonly #parts: PodLogsParts;
  readonly #turns = new Turns(atOnce);
  /** One call at a time for each Pod: however many read the logs of one, those of the others do not stand behind them. */
  readonly #turnsOf = new WeakMap<TrackedPod, Turns>();

  constructor(parts: PodLogsParts) {
    this.#parts = parts;
  }

  /** @throws Refusal if the log of a running container cannot be had now */
  async open(
    pod: TrackedPod,
    container: string,
    opts: LogOpts,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    const { machines } = this.#parts;
    const parts =
      machines === undefined
        ? this.#here(pod, container, signal)
        : this.#there(pod, container, opts, signal, machines);
    const pieces = readLog(opts, signal, parts);
    return opts.Follow ? pieces : this.#begun(pieces, signal);
  }

  /** The job writes the log itself. */
  #here(pod: TrackedPod, container: string, signal: AbortSignal): LogParts {
    const { host, files } = this.#parts;
    return {
      clock: host.clock,
      stage: async () => {
        const stage = stageOf(pod, container);
        return stage === 'coming' ? 'ended' : stage;
      },
      look: () => fileView(files.logOf(pod.record.uid, container), this.#fileTurns(pod, signal)),
    };
  }

  #there(
    pod: TrackedPod,
    container: string,
    { Follow }: LogOpts,
    signal: AbortSignal,
    { peeks, looks }: NonNullable<PodLogsParts['machines']>,
  ): LogParts {
    const { host, files } = this.#parts;
    const { uid } = pod.record;
    const live = new LiveLog(container, {
      directory: files.outputOf(uid),
      peek: (file, mostBytes) =>
        inTurn(this.#turnsFor(pod), signal, () => peeks.peek(pod, file, mostBytes, signal)),
    });
    const look = async (shown: Shown | undefined): Promise<LogView | undefined> => {
      const stage = stageOf(pod, container);
      if (stage === 'over') return fileView(files.logOf(uid, container), this.#fileTurns(pod, signal));
      if (stage === 'coming') return undefined;
      if (!looks.isBlind(pod)) {
        const view = await live.look(shown);
        // The runner makes the log before it tells of the container. Without a log nothing was seen, and an empty one would be wrong.
        if (view !== undefined || Follow || !hasBegun(pod, container)) return view;
        throw new ThresherError('no-log', `the machine of its job shows no ${container}.log`);
      }
      if (Follow) return undefined;
      throw new ThresherError('no-log', 'the backend shows no files of running jobs');
    };
    let isQuiet = false;
    return {
      clock: host.clock,
      stage: async () => {
        // The end of a container is the end of its log, and a reader waits for it.
        if (Follow) await looks.look(pod, signal);
        return stageOf(pod, container);
      },
      look: async (shown) => {
        try {
          return await look(shown);
        } catch (error) {
          if (!Follow || signal.aborted) throw error;
          if (!isQuiet)
            host.log.warn('the log of a running Pod cannot be seen', { pod: uid, ...toReason(error) });
          isQuiet = true;
          return undefined;
        }
      },
    };
  }

  #fileTurns(pod: TrackedPod, signal: AbortSignal): InTurn {
    return (call) => inTurn(this.#turnsFor(pod), signal, () => inTurn(this.#turns, signal, call));
  }

  #turnsFor(pod: TrackedPod): Turns {
    const turns = this.#turnsOf.get(pod) ?? new Turns(1);
    this.#turnsOf.set(pod, turns);
    return turns;
  }

  /** An error before the first piece is an answer, and no end of one. */
  async #begun(pieces: AsyncGenerator<Uint8Array>, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { clock } = this.#parts.host;
    const over = new AbortController();
    const first = pieces.next();
    try {
      await Promise.race([first, clock.sleep(patience, AbortSignal.any([signal, over.signal]))]);
    } catch (error) {
      const when =
        error instanceof ThresherError && error.code === 'no-log' ? '; it comes with the end of the job' : '';
      throw new Refusal(
        503,
        `the log of the running container cannot be had now: ${messageOf(error)}${when}`,
      );
    } finally {
      over.abort();
    }
    return goOn(first, pieces);
  }
}

/** @throws Error where the reader goes away before its turn comes */
async function inTurn<T>(turns: Turns, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  if (!(await turns.begin(signal))) throw new Error('nobody reads the log any more');
  try {
    return await call();
  } finally {
    turns.end();
  }
}

async function* goOn(
  first: Promise<IteratorResult<Uint8Array, unknown>>,
  pieces: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    const { done, value } = await first;
    if (done === true) return;
    yield value;
    yield* pieces;
  } finally {
    await pieces.return(undefined);
  }
}

function hasBegun({ report }: TrackedPod, container: string): boolean {
  const state = report?.containers[container]?.state;
  return state !== undefined && state !== 'waiting';
}

/** How far a container's log is. The first row that is true counts. */
function stageOf(pod: TrackedPod, container: string): LogStage {
  if (pod.isDeleted || pod.hasEnded) return 'over';
  if (pod.ending !== undefined) return 'coming';
  return pod.report?.containers[container]?.state === 'terminated' ? 'ended' : 'open';
}

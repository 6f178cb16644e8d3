import type { SourceHost } from '../../../plugins/contracts/index.ts';
import { ThresherError, toReason } from '../../../worker/errors.ts';
import { bounds } from '../bounds.ts';
import type { Peeks } from './peeks.ts';
import { type PodReport, readReport, reportFile } from '../pod/report.ts';
import { isAtWork } from '../pods/facts.ts';
import type { PodRecord } from '../pods/pod-record.ts';
import type { TrackedPod } from '../pods/tracked-pod.ts';

/** So many looks begin in one pass. */
const mostInPass = 4;
/** Seconds before the first looks at a job that has told nothing yet. The last one counts for all further ones. */
const firstPauses = [1, 1, 2, 4, 8, 15] as const;
/** Seconds between two looks at a job with states that may change: a tenth of its age, within these. */
const [shortest, longest] = [2, 30];

/** The looks at one run of a job. */
interface Watched {
  readonly start: number | null;
  /** ms UTC. */
  next: number;
  looks: number;
  /** The job sends its reports itself. */
  isTold: boolean;
  /** The backend shows no files of it. */
  isBlind: boolean;
  /** The log has had the first failure of a look. */
  isNoted: boolean;
  isUnderWay: boolean;
}

/**
 * Seconds until the next look at the report of a running job; undefined: none is needed, since the end of the job says the rest.
 * @param age of the job's run, s
 */
export function nextLook(
  record: PodRecord,
  report: PodReport | undefined,
  looks: number,
  age: number,
): number | undefined {
  if (report === undefined) return firstPauses[Math.min(looks, firstPauses.length - 1)];
  const told = Object.values(report.containers);
  if (told.every(({ state }) => state === 'terminated')) return undefined;
  const { containers } = record;
  const only = containers.length === 1 ? report.containers[containers[0]?.name ?? ''] : undefined;
  const mayChange = containers[0]?.isProbed === true;
  if (only?.state === 'running' && only.ready && !mayChange) return undefined;
  return Math.min(longest, Math.max(shortest, age / 10));
}

/**
 * Looks at the reports of running jobs that neither share a file system with the daemon nor send their reports. A look is a process
 * and a connection to the machine of the job, so a job gets one only while its states may change.
 */
export class Looks {
  readonly #host: Pick<SourceHost, 'clock' | 'log'>;
  readonly #peeks: Peeks;
  readonly #watched = new WeakMap<TrackedPod, Watched>();

  constructor(host: Pick<SourceHost, 'clock' | 'log'>, peeks: Peeks) {
    this.#host = host;
    this.#peeks = peeks;
  }

  /** Its job sends its reports: they are newer than any look. */
  told(pod: TrackedPod): void {
    this.#of(pod).isTold = true;
  }

  /** Whether the backend shows no files of this running job: they come with its end. */
  isBlind(pod: TrackedPod): boolean {
    return this.#of(pod).isBlind;
  }

  /** Looks at the jobs whose turn it is. */
  async pass(pods: readonly TrackedPod[], signal: AbortSignal): Promise<void> {
    const now = this.#host.clock.now();
    const due = pods.flatMap((pod) => {
      if (!isRunning(pod)) return [];
      const watched = this.#of(pod);
      const { isTold, isBlind, isUnderWay, next } = watched;
      return isTold || isBlind || isUnderWay || next > now ? [] : [{ pod, next }];
    });
    const chosen = due.toSorted((a, b) => a.next - b.next).slice(0, mostInPass);
    await Promise.all(chosen.map(({ pod }) => this.look(pod, signal)));
  }

  /** Looks now, unless the job tells by itself. */
  async look(pod: TrackedPod, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#host;
    const watched = this.#of(pod);
    if (!isRunning(pod) || watched.isTold || watched.isBlind || watched.isUnderWay) return;
    watched.isUnderWay = true;
    try {
      const got = await this.#peeks.peek(pod, reportFile, bounds.reportBytes, signal);
      // A report that the job sent meanwhile is newer.
      const now = this.#of(pod);
      if (got !== undefined && now === watched && !now.isTold && isRunning(pod)) take(pod, got);
    } catch (error) {
      // The machine of a job that ends meanwhile gives no answer.
      if (signal.aborted || !isRunning(pod)) return;
      watched.isBlind = error instanceof ThresherError && error.code === 'no-log';
      // A machine that does not answer is looked at again and again.
      const level = watched.isNoted ? 'debug' : 'warn';
      watched.isNoted = true;
      log[level]('the report of a running Pod cannot be seen', { pod: pod.record.uid, ...toReason(error) });
    } finally {
      watched.isUnderWay = false;
      const now = clock.now();
      const age = (now - (watched.start ?? now)) / 1000;
      const pause = nextLook(pod.record, pod.report, watched.looks, age);
      watched.looks += 1;
      watched.next = pause === undefined ? Infinity : now + pause * 1000;
    }
  }

  #of(pod: TrackedPod): Watched {
    const start = pod.facts?.startTime ?? null;
    const known = this.#watched.get(pod);
    if (known?.start === start) return known;
    const next = this.#host.clock.now() + firstPauses[0] * 1000;
    const no = { isTold: false, isBlind: false, isNoted: false, isUnderWay: false };
    const made: Watched = { start, next, looks: 0, ...no };
    this.#watched.set(pod, made);
    return made;
  }
}

function isRunning({ facts, ending, isDeleted, hasEnded }: TrackedPod): boolean {
  return facts !== undefined && isAtWork(facts) && ending === undefined && !isDeleted && !hasEnded;
}

/** A look that meets a file which is just replaced finds no report, and the next look finds one. */
function take(pod: TrackedPod, got: Uint8Array): void {
  const report = readReport(Buffer.from(got).toString('utf8'));
  if (typeof report === 'object') pod.takeReport(report);
}

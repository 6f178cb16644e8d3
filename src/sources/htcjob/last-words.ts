import type { Desk, Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { withDeadline } from '../../util/deadline.ts';
import { oneLine } from '../../util/one-line.ts';
import { endFromOutside } from '../../util/own-secrets.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import { toReason } from '../../worker/errors.ts';
import type { Judgement } from './judge.ts';

/** What a failed job wrote last. */
export interface LastWords {
  readonly stream: 'stdout' | 'stderr';
  /** Whole lines where they are short enough, without secrets and control codes. */
  readonly text: string;
  /** Why the runner (`templates/htcjob/run.sh`) could not run the script at all, if so. */
  readonly notRun: string | undefined;
}

/** A HTCJob that keeps what was read. */
export interface Hearer {
  readonly name: string;
  /** Of its first failed job, once they were looked for: a status that is written again does not read a log again. */
  lastWords: { readonly workerId: number; readonly said: LastWords | undefined } | undefined;
}

/** Lines that are shown, and characters of them. Kubernetes shows 2048 bytes of a container's log (`FallbackToLogsOnError`). */
const most = { lines: 10, characters: 1000 };
/** Lines of the end that are looked at for secrets: one that begins before those that are shown, such as a key of many lines, is seen whole. */
const lookedAt = 400;
/** Bytes of the end of a log that are kept while it is read: more than `endFromOutside` looks at. */
const keptBytes = 32_000;
/** How long a log may take, ms: the status with the end of the job waits for it. */
const patience = 5000;
/** Logs that are read per second, and at once: each may cost two questions to the schedd, and a thousand HTCJobs may fail together. */
const rate = { perSecond: 1, burst: 10 };

/** How run.sh says that it ends without the script, and by which exit status. */
const notRun = /^thresher: the job cannot be run: (.+)$/;
const exitsOfRunner: readonly number[] = [125, 127, 255];

export interface LastWordsParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly desk: Pick<Desk, 'logs'>;
}

/**
 * Reads the end of the log of the first failed job of a HTCJob: users who have kubectl alone see it in the condition `Failed`. Without an answer in
 * time, or beyond the rate, the condition goes without it.
 */
export class LastWordsReader {
  readonly #parts: LastWordsParts;
  readonly #bucket: TokenBucket;

  constructor(parts: LastWordsParts) {
    this.#parts = parts;
    this.#bucket = new TokenBucket(rate.perSecond, rate.burst, parts.clock);
    // The reads before a restart are no reason to hold back the first ones.
    this.#bucket.take(-rate.burst);
  }

  /** Writes them into `tracked.lastWords`, unless they are there. */
  async hear(tracked: Hearer, { jobs }: Judgement, signal: AbortSignal): Promise<void> {
    const { workerId, exitCode } = jobs.find(({ outcome }) => outcome === 'failed')?.facts ?? {};
    // A job that was removed or killed has its reason from HTCondor, and maybe no log.
    if (typeof workerId !== 'number' || typeof exitCode !== 'number' || exitCode === 0) return;
    if (tracked.lastWords?.workerId === workerId) return;
    let said: LastWords | undefined;
    if (this.#bucket.available >= 1) {
      this.#bucket.take(1);
      said = await this.#read(tracked.name, workerId, exitCode, signal);
    }
    tracked.lastWords = { workerId, said };
  }

  async #read(
    htcjob: string,
    workerId: number,
    exitCode: number,
    signal: AbortSignal,
  ): Promise<LastWords | undefined> {
    const { clock, log } = this.#parts;
    const deadline = { clock, what: `log of worker ${workerId}`, timeoutMs: patience, signal };
    try {
      return await withDeadline(deadline, async (end): Promise<LastWords | undefined> => {
        for (const stream of ['stderr', 'stdout'] as const) {
          const text = await this.#endOf(workerId, stream, end);
          if (text === '') continue;
          const [, why] = notRun.exec(text.split('\n').at(-1) ?? '') ?? [];
          const isRunners = stream === 'stderr' && exitsOfRunner.includes(exitCode);
          return { stream, text, notRun: isRunners ? why : undefined };
        }
        return undefined;
      });
    } catch (error) {
      signal.throwIfAborted();
      log.debug('no last words of a failed job', { htcjob, workerId, ...toReason(error) });
      return undefined;
    }
  }

  /** Empty where it wrote nothing. */
  async #endOf(workerId: number, stream: LastWords['stream'], signal: AbortSignal): Promise<string> {
    const request = { stream, follow: false, tail: lookedAt };
    let bytes = Buffer.alloc(0);
    for await (const piece of await this.#parts.desk.logs(workerId, request, signal)) {
      signal.throwIfAborted();
      bytes = Buffer.concat([bytes, piece.subarray(-keptBytes)]).subarray(-keptBytes);
    }
    return shown(bytes.toString('utf8'));
  }
}

/** The last lines of a text as a condition shows them. */
function shown(text: string): string {
  const lines = text.trimEnd().split('\n');
  const plain = lines.map((line) => oneLine(line).trimEnd()).join('\n');
  // Secrets are looked for before the cut: of a piece of one nothing may tell what it is.
  const last = endFromOutside(plain, keptBytes).split('\n').slice(-most.lines).join('\n').trimStart();
  if (last.length <= most.characters) return last.toWellFormed();
  const end = last.slice(-most.characters);
  const line = end.indexOf('\n');
  // A line that is longer than all that is shown begins behind the word in which it is cut.
  return `...${line < 0 ? end.replace(/^\S*/, '') : end.slice(line)}`.toWellFormed();
}

import { basename, dirname, isAbsolute, resolve } from 'node:path';
import { type JobId, jobIdText, parseJobId, whereJobs } from '../../clients/htcondor/classad.ts';
import { isHTCondorError } from '../../clients/htcondor/errors.ts';
import type { Ad } from '../../clients/htcondor/json-objects.ts';
import { lastPlaceOf, unitsOf } from '../../util/places.ts';
import type { Clock } from '../../util/clock.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { LogReader, LogRequest, PeekRequest } from '../contracts/log-reader.ts';
import type { HTCondorSchedd } from './schedd.ts';
import { jobOfWorker, partedFor, whereOurs, whereWorkers } from './look-up.ts';
import { jobOf } from './marks.ts';
import { endOfFile, type OutputFile } from './output-file.ts';

/** A job's output and how to reach it. */
interface Source {
  readonly workerId: number;
  readonly job: JobId;
  /** Undefined: it has none. */
  readonly file: OutputFile | undefined;
  /** Its output is on the machine where it runs. */
  readonly runs: boolean;
  /** It has ended, one way or another. */
  readonly over: boolean;
  /** Its output stays in the spool of the schedd until it is fetched. */
  readonly spooled: boolean;
}

/** So much of the end of an output is read, bytes. */
const mostRead = 4 * 2 ** 20;
/** Between two looks at a running job, ms: each is a process that speaks to its machine. */
const followInterval = 2000;
/** How long `condor_tail` may take, ms; for many bytes. */
const [tailWait, longTailWait] = [10_000, 60_000];
const manyBytes = 2 ** 20;

const attributes = [
  ...['ClusterId', 'ProcId', 'JobStatus', 'HoldReasonCode', 'JobStartDate', 'RemoveReason'],
  ...['harvesterWorkerID', 'Iwd', 'Out', 'Err', 'SUBMIT_Iwd', 'SUBMIT_Out', 'SUBMIT_Err', 'StageInFinish'],
  ...['UserLog', 'SUBMIT_UserLog', 'StreamOut', 'StreamErr', 'Owner'],
];

/** Reads the output of a job: from its file, or through `condor_tail` while it runs, or from the spool. */
export class HTCondorLogs implements LogReader {
  readonly #schedd: HTCondorSchedd;
  readonly #clock: Clock;

  constructor(schedd: HTCondorSchedd, clock: Clock) {
    this.#schedd = schedd;
    this.#clock = clock;
  }

  async *read(worker: Worker, request: LogRequest, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const { stream, follow, tail } = request;
    const encoder = new TextEncoder();
    let shown: string | undefined;
    while (!signal.aborted) {
      const source = await this.#source(worker, stream, signal);
      const text = await this.#text(source, stream, signal);
      if (text === undefined) {
        if (!follow || source.over) throw this.#none(worker, source, stream);
      } else {
        const next = shown === undefined ? lastLines(text, tail) : added(shown, text);
        shown = text;
        if (next !== '') yield encoder.encode(next);
      }
      if (!follow || source.over) return;
      await this.#clock.sleep(followInterval, signal);
    }
  }

  /** Straight from the machine of the job: the queue is not asked whether the job runs. */
  async peek(
    { workerId, handle }: Worker,
    { file, mostBytes }: PeekRequest,
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    const job = handle && parseJobId(handle.batchID);
    if (job === undefined) return undefined;
    const { client } = this.#schedd;
    const wait = mostBytes > manyBytes ? longTailWait : tailWait;
    try {
      return await this.#within(wait, signal, (either) =>
        client.tailFile(job, { file, maxBytes: mostBytes }, either),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      if (isHTCondorError(error, 'condor-not-listed')) {
        const message = `HTCondor shows no ${file} of worker ${workerId} while it runs: transfer_output_files of its template does not name it`;
        throw new ThresherError('no-log', message, {}, { cause: error });
      }
      // It ended in this moment, or has no such file yet: the starter of the job has the last word, and says no more than that it failed.
      // A command that was given up has no word of the starter.
      if (isHTCondorError(error, 'condor-no-job', 'condor-failed')) return undefined;
      throw error;
    }
  }

  async #source(worker: Worker, stream: LogRequest['stream'], signal: AbortSignal): Promise<Source> {
    const { client, mine, submissionHost } = this.#schedd;
    const constraint = `${mine} && (${whereWorkers([worker.workerId])})`;
    // The ad of another user's job would name a file of ours as its output.
    const ours = async (ads: readonly Ad[], queued: boolean) => {
      const jobs = ads.flatMap((raw) => {
        const job = jobOf(raw, queued);
        return job === undefined ? [] : [{ ...job, raw }];
      });
      return (await partedFor(this.#schedd, [worker], jobs, signal)).ours;
    };
    let jobs = await ours(await client.queue(constraint, attributes, signal), true);
    if (jobs.length === 0) {
      const own = `${constraint} && ${whereOurs([worker], await this.#schedd.owners.now(signal))}`;
      jobs = await ours(await client.history(own, attributes, 2, signal), false);
    }
    const job = jobOfWorker(worker, jobs);
    if (job === undefined) {
      const message = `worker ${worker.workerId} has no job in the queue or history of ${submissionHost}: none was made yet, or it is forgotten`;
      throw new ThresherError('no-log', message);
    }
    const { raw } = job;
    const { JobStatus = 0 } = job.ad;
    return {
      workerId: worker.workerId,
      job: job.id,
      // The ad of a spooled job may name the file by another name.
      file: (await this.#schedd.outputs.wordsOf(worker.workerId, stream)) ?? fileOf(raw, stream),
      runs: JobStatus === 2 && raw[`Stream${names[stream]}`] !== true,
      over: JobStatus === 3 || JobStatus === 4 || !job.queued,
      spooled: typeof raw['StageInFinish'] === 'number' && raw['StageInFinish'] > 0,
    };
  }

  /** The end of what there is; undefined: nothing can be had now. */
  async #text(
    { workerId, job, file, runs, over, spooled }: Source,
    stream: LogRequest['stream'],
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { client, mine, outputs } = this.#schedd;
    // HTCondor writes the job's log where the schedd is.
    if (runs && stream !== 'job-log') {
      try {
        return await this.#tail(job, stream, signal);
      } catch (error) {
        // It ended in this moment, or has not begun to write; the schedd itself has just answered.
        const ended = isHTCondorError(
          error,
          'condor-no-job',
          'condor-failed',
          'condor-given-up',
          'condor-unreachable',
        );
        if (!ended || signal.aborted) throw error;
      }
    }
    if (file === undefined) return undefined;
    const text = await this.#endOf(file);
    // The file may be there, and empty, before the job is submitted.
    if ((text !== undefined && text !== '') || !spooled || !over) return text;
    // It goes to where it was submitted from, as its submit description says.
    const fetch = () => client.transferData(`${mine} && (${whereJobs([job])})`, signal);
    await outputs.bring([workerId], fetch, signal);
    return this.#endOf(file);
  }

  #endOf(file: OutputFile): Promise<string | undefined> {
    const path = resolve(file.directory, file.name);
    return this.#schedd.files.run(`reading ${path}`, () => endOfFile(file, mostRead));
  }

  /** `condor_tail` may hang if the job ends meanwhile: on its machine no process answers any more. */
  #tail(job: JobId, stream: 'stdout' | 'stderr', signal: AbortSignal): Promise<string> {
    const { client } = this.#schedd;
    return this.#within(tailWait, signal, (either) =>
      client.tail(job, { stream, maxBytes: mostRead }, either),
    );
  }

  async #within<T>(ms: number, signal: AbortSignal, work: (either: AbortSignal) => Promise<T>): Promise<T> {
    const [patience, over] = [new AbortController(), new AbortController()];
    const waiting = this.#clock.sleep(ms, AbortSignal.any([signal, over.signal])).then(() => {
      patience.abort();
    });
    try {
      return await work(AbortSignal.any([signal, patience.signal]));
    } finally {
      over.abort();
      await waiting;
    }
  }

  #none(worker: Worker, { job, file, over }: Source, stream: string): ThresherError {
    const where =
      file === undefined
        ? `names no file for ${stream}`
        : `has written no ${resolve(file.directory, file.name)}`;
    const when = over ? '' : ', and does not run';
    const message = `job ${jobIdText(job)} of worker ${worker.workerId} ${where}${when}`;
    return new ThresherError('no-log', message);
  }
}

const names = { stdout: 'Out', stderr: 'Err', 'job-log': 'UserLog' } as const;

/** A spooled job has another directory at the schedd than here. */
function fileOf(raw: Ad, stream: LogRequest['stream']): OutputFile | undefined {
  const name = names[stream];
  const text = (key: string) => {
    const value = raw[key];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const file = text(`SUBMIT_${name}`) ?? text(name);
  if (file === undefined || file === '/dev/null') return undefined;
  const directory = text('SUBMIT_Iwd') ?? text('Iwd') ?? '/';
  return isAbsolute(file) ? { directory: dirname(file), name: basename(file) } : { directory, name: file };
}

/** The last so many lines of a text; undefined: all. */
export function lastLines(text: string, lines: number | undefined): string {
  if (lines === undefined) return text;
  // From the end: a log of line ends alone has millions of lines.
  let from = text.length;
  for (let left = lines; left > 0 && from > 0; left--)
    from = from < 2 ? 0 : text.lastIndexOf('\n', from - 2) + 1;
  return text.slice(from);
}

/** The text after the part that was shown, found by its end: only the end of an output can be had. */
function added(shown: string, text: string): string {
  if (text.startsWith(shown)) return text.slice(shown.length);
  const end = shown.slice(-4096);
  const at = lastPlaceOf(unitsOf(text), unitsOf(end));
  return at < 0 ? text : text.slice(at + end.length);
}

import type { Desk, Log } from '../../../plugins/contracts/index.ts';
import type { Clock } from '../../../util/clock.ts';
import { toReason } from '../../../worker/errors.ts';
import type { WorkerNews } from '../../../worker/news.ts';
import type { Reason } from '../../../worker/reason.ts';
import type { RetrievedPodData } from '../../../clients/interlink/wire.ts';
import { bounds } from '../bounds.ts';
import { type PodReport, readReport } from '../pod/report.ts';
import { hasEnded, type PodFacts } from './facts.ts';
import type { PodIdentity } from '../identity.ts';
import { isSameVersion, type PodFiles, type ReportVersion } from './pod-files.ts';
import type { PodRecord } from './pod-record.ts';
import { waitAfter } from './wait.ts';
import { deletedRecord, endedRecord, TrackedPod } from './tracked-pod.ts';

/**
 * How long files of a job are waited for once its end was heard of, ms: where nothing stands against their coming, and where something
 * does. A schedd keeps a spooled job for ten days.
 */
const patience = { quiet: 120_000, known: 10 * 86_400_000 };

/** Times of news, and of the wait for files. */
type Times = Pick<Clock, 'now' | 'monotonic'>;

/** Why a Pod whose files tell of a job ends where the database knows none. Its code is in it, since Kubernetes shows the sentence alone. */
export const lostJob =
  'interlink-job-lost: the database does not know the job of this Pod any more, and a Pod starts only once';

/** Origins that are looked up at once. */
const atOnce = 500;

/** All Pods that were accepted and not removed, each with its file. */
export class PodBook {
  readonly files: PodFiles;
  readonly #log: Log;
  /** By UID. */
  readonly #pods = new Map<string, TrackedPod>();
  #loaded: Promise<void> | undefined;
  /** UIDs of Pods whose files cannot be read. */
  #damaged = new Set<string>();
  /** UIDs of Pods whose jobs live, and whose files are not there. */
  readonly #lacking = new Set<string>();
  /** Several of them were not: the directory is an older copy, or has lost a part. */
  #isIncomplete = false;
  /** The jobs of Pods that are written down, one after the other: there may be thousands, and news must not wait for the disk. */
  #marks: Promise<void> = Promise.resolve();

  constructor(files: PodFiles, log: Log) {
    this.files = files;
    this.#log = log;
  }

  get(uid: string): TrackedPod | undefined {
    return this.#pods.get(uid);
  }

  get all(): readonly TrackedPod[] {
    return [...this.#pods.values()];
  }

  /** Whether no file of any Pod was there. */
  get isEmpty(): boolean {
    return this.#pods.size === 0 && this.#damaged.size === 0;
  }

  /** Whether the file of this Pod is there, and cannot be read. */
  isDamaged(uid: string): boolean {
    return this.#damaged.has(uid) && !this.#pods.has(uid);
  }

  /** Jobs of Pods whose files are not there live. @returns whether these are left alone, since it is not the one Pod whose file is not there */
  lack(uids: readonly string[]): boolean {
    for (const uid of uids) this.#lacking.add(uid);
    this.#isIncomplete ||= this.#lacking.size > 1;
    return this.#isIncomplete;
  }

  /** The job of this Pod, whose file is not there, lives, and is left alone. */
  isLacking(uid: string): boolean {
    return this.#isIncomplete && this.#lacking.has(uid) && !this.#pods.has(uid);
  }

  /** Which Pods have jobs that are left alone; undefined: none has. */
  get whyIncomplete(): Reason | undefined {
    const uids = [...this.#lacking].filter((uid) => this.isLacking(uid));
    if (uids.length === 0) return undefined;
    const some = uids.slice(0, 3).join(', ');
    const message = `${uids.length} jobs of Pods live, and ${this.files.place} has no files of these Pods: ${some}${uids.length > 3 ? ', ...' : ''}; they run on`;
    return { code: 'interlink-missing', message };
  }

  /** Reads the files once. @throws ThresherError `interlink-files`: the next call reads them again */
  load(): Promise<void> {
    this.#loaded ??= this.files.load().then(
      ({ records, damaged }) => {
        for (const { record, bodyBytes } of records)
          this.#pods.set(record.uid, new TrackedPod(record, bodyBytes));
        this.#damaged = new Set(damaged);
      },
      (error: unknown) => {
        this.#loaded = undefined;
        throw error;
      },
    );
    return this.#loaded;
  }

  /** An empty directory may be one that is not mounted: the next call of `load` looks again. */
  unload(): void {
    if (this.isEmpty) this.#loaded = undefined;
  }

  /** Makes what Pods and their jobs need on the disk. @throws ThresherError `interlink-files` */
  async prepare(): Promise<void> {
    const open = this.all.filter((pod) => !pod.hasEnded && !pod.isDeleted);
    await this.files.prepare(open.map(({ record }) => record.uid));
  }

  /** News that were heard before a crash do not come again: the store says what became of the jobs. */
  async catchUp(desk: Pick<Desk, 'find'>, clock: Times): Promise<void> {
    const open = this.all.filter((pod) => !pod.hasEnded);
    for (let from = 0; from < open.length; from += atOnce)
      await this.hear(await desk.find(open.slice(from, from + atOnce).map(({ origin }) => origin)), clock);
  }

  /** Takes news of jobs. What the files of one Pod do keeps no other from its end, and that one is looked at again by `finish`. */
  async hear(news: readonly WorkerNews[], clock: Times): Promise<void> {
    const failed: string[] = [];
    let first: unknown;
    for (const one of news) {
      if (hasEnded(one.worker)) this.#lacking.delete(one.origin.uid);
      const pod = this.get(one.origin.uid);
      if (pod === undefined) continue;
      try {
        await this.#take(pod, one, clock);
      } catch (error) {
        first ??= error;
        failed.push(one.origin.uid);
      }
    }
    if (failed.length > 0)
      this.#log.warn('the ends of Pods could not be taken yet', { pods: failed, ...toReason(first) });
  }

  /**
   * The end of a job that ran is shown only when its files are there: a schedd that spools gives them out later.
   * @throws ThresherError `interlink-files`: `finish` is to come to an end of it
   */
  async #take(pod: TrackedPod, news: Pick<WorkerNews, 'worker'>, clock: Times): Promise<void> {
    // The same news may come again: they know less than the end that was written down.
    if (pod.hasEnded) return;
    const facts = pod.after(news);
    if (!hasEnded(facts)) {
      if (pod.ending === undefined) pod.take(facts);
      this.mark(pod, facts);
      pod.wait = waitAfter(pod.wait, facts, news.worker, clock.now());
      return;
    }
    const ending = { facts, since: clock.monotonic(), heardAt: clock.now() };
    try {
      await this.#readReport(pod);
      if (facts.startTime === null) {
        await this.#settle(pod, ending);
        return;
      }
    } catch (error) {
      pod.ending ??= ending;
      throw error;
    }
    pod.ending ??= ending;
    // A daemon that has just begun knows no earlier facts of the job.
    if (pod.facts === undefined) pod.take({ ...facts, status: 'running', message: null, endTime: null });
  }

  /**
   * Has the files of a job that ended fetched, and shows its end when they are there, or when it is too late for them.
   * @param now monotonic ms
   */
  async finish(pod: TrackedPod, desk: Pick<Desk, 'discard' | 'whyLeft'>, now: number): Promise<void> {
    const { ending } = pod;
    if (ending === undefined) return;
    // A sweep fetches what the backend has of the worker, and removes it there then.
    const left = await desk.discard(pod.record.uid);
    await this.#readReport(pod);
    const { facts, since } = ending;
    const why = facts.workerId === null ? undefined : desk.whyLeft(facts.workerId);
    const waited = now - since;
    if (left === 0 || waited > (why === undefined ? patience.quiet : patience.known))
      await this.#settle(pod, ending);
    // A sweep that comes in a moment is no news.
    else if (why?.code !== 'sweep-awaited' || waited > patience.quiet) pod.unfetched = why?.message;
  }

  async #readReport(pod: TrackedPod): Promise<void> {
    // The last report of a job is read again in any case: on some file systems it may look like the one before it.
    const report = await this.#reportSince(pod, undefined);
    if (report !== undefined) pod.takeReport(report);
  }

  async #settle(
    pod: TrackedPod,
    { facts: told, heardAt }: Pick<NonNullable<TrackedPod['ending']>, 'facts' | 'heardAt'>,
  ): Promise<void> {
    // HTCondor says only that thresher removed the job.
    const wasEnded = told.status === 'cancelled' || told.status === 'withdrawn';
    const why = pod.endReason ?? (told.status === 'withdrawn' && pod.hadJob ? lostJob : undefined);
    const explained = wasEnded && why !== undefined ? { ...told, message: why } : told;
    const heard = why === lostJob ? { ...explained, ...lost(pod) } : explained;
    const facts = pod.report === undefined ? await this.#withLastWords(pod, heard) : heard;
    await this.files.wipe(pod.record.uid);
    await pod.change(
      (record) => endedRecord(record, facts, pod.report, heardAt),
      // Another file of a deleted Pod might come after the last one was removed.
      async (record) => {
        if (record.deleted !== true) await this.files.save(record);
      },
    );
    pod.take(facts);
    pod.wait = undefined;
    pod.unfetched = undefined;
    pod.ending = undefined;
  }

  /**
   * Where the database is lost, its file still tells that the Pod had its job. Its body is not needed any more, and goes. It is tried again with
   * each look at the Pod: news of its job may come no more until its end.
   */
  mark(pod: TrackedPod, { batchId }: PodFacts): void {
    if (batchId === null || pod.record.job !== undefined || pod.marking === 'now') return;
    const isTold = pod.marking === 'failed';
    pod.marking = 'now';
    this.#marks = this.#marks.then(async () => {
      try {
        await pod.change(
          (record) => ({ ...record, job: batchId }),
          // Another file of a deleted Pod might come after the last one was removed.
          async (record) => {
            if (record.deleted !== true) await this.files.save(record);
          },
        );
        pod.bodyBytes = 0;
        pod.hadJob = true;
        pod.marking = 'due';
      } catch (error) {
        pod.marking = 'failed';
        if (isTold) return;
        this.#log.warn('the job of a Pod could not be written down', {
          pod: pod.record.uid,
          job: batchId,
          ...toReason(error),
        });
      }
    });
  }

  /** Files of earlier versions do not say when the end of the Pod was heard: from now on this one does. @throws ThresherError `interlink-files` */
  async noteHeard(pod: TrackedPod, heardAt: number): Promise<void> {
    await pod.change(
      (record) => ({ ...record, heardAt }),
      async (record) => {
        if (record.deleted !== true) await this.files.save(record);
      },
    );
  }

  /** All that was heard of jobs up to now is written down, or cannot be. */
  marked(): Promise<void> {
    return this.#marks;
  }

  /** The body of a Pod that waits for its job; undefined where a job of it has left files: one that the database has lost. @throws */
  async body(pod: TrackedPod): Promise<RetrievedPodData | undefined> {
    const { uid } = pod.record;
    if (await this.files.hasOutput(uid)) pod.hadJob = true;
    return pod.hadJob ? undefined : this.files.body(uid);
  }

  /** A job that left no report may have said why. */
  async #withLastWords({ record: { uid } }: TrackedPod, facts: PodFacts): Promise<PodFacts> {
    const words = await this.files.lastWords(uid);
    if (words === undefined) return facts;
    const message = facts.message === null ? words : `${facts.message}; the job's last words: ${words}`;
    return { ...facts, message };
  }

  /** The report that the job left since the last look. */
  newReport(pod: TrackedPod): Promise<PodReport | undefined> {
    return this.#reportSince(pod, pod.seenReport);
  }

  /** A damaged report counts for nothing. */
  async #reportSince(pod: TrackedPod, seen: ReportVersion | undefined): Promise<PodReport | undefined> {
    const { uid } = pod.record;
    const found = await this.files.reportSince(uid, seen);
    if (found === undefined) return undefined;
    const isTold = isSameVersion(found.version, pod.seenReport);
    pod.seenReport = found.version;
    // The runner has begun, and has told nothing yet.
    if (found.text === '') return undefined;
    const report = readReport(found.text);
    if (typeof report === 'object') return report;
    if (!isTold) this.#log.warn('the report of a Pod is none', { pod: uid, why: report });
    return undefined;
  }

  /** When this returns, the Pod survives a crash. Requests that come meanwhile find it, and wait with it. */
  async accept(record: PodRecord, data: RetrievedPodData): Promise<TrackedPod> {
    const pod = new TrackedPod(record);
    this.#pods.set(record.uid, pod);
    try {
      // Nothing is awaited before: every later change of the Pod stands behind this one.
      await pod.change(
        (now) => now,
        async (now) => {
          pod.bodyBytes = await this.files.add(now, data);
          // That of any other is read from its file when its turn comes.
          if (this.#bodyBytes + pod.bodyBytes <= bounds.waitingBytes) pod.body = data;
        },
      );
      return pod;
    } catch (error) {
      pod.fail(error);
      await this.#removeFiles(pod).catch(() => undefined);
      // A request that comes until now shares the failure, so that its file is not the one that goes.
      this.#pods.delete(record.uid);
      throw error;
    }
  }

  /** Bytes of all bodies that are in memory. */
  get #bodyBytes(): number {
    let bytes = 0;
    for (const pod of this.#pods.values()) if (pod.body !== undefined) bytes += pod.bodyBytes;
    return bytes;
  }

  /** When this returns, a crash does not bring the Pod back. */
  async forget(pod: TrackedPod): Promise<void> {
    if (!pod.isDeleted) await pod.change(deletedRecord, (record) => this.files.save(record));
  }

  /** Takes up a deleted Pod whose file is not there, though it has a job: what is left of it is to be removed. */
  async bury(identity: PodIdentity, acceptedAt: number): Promise<TrackedPod> {
    const pod = new TrackedPod({ version: 1, ...identity, containers: [], initContainers: [], acceptedAt });
    this.#pods.set(identity.uid, pod);
    try {
      await this.forget(pod);
    } catch (error) {
      this.#pods.delete(identity.uid);
      throw error;
    }
    return pod;
  }

  /** Removes what is left of a deleted Pod, once nothing of its job is left. @returns whether it is done */
  async clear(pod: TrackedPod, desk: Pick<Desk, 'discard' | 'dropOutputs' | 'find'>): Promise<boolean> {
    const { uid } = pod.record;
    if (!pod.isLetGo) {
      const facts = pod.ending?.facts ?? pod.facts ?? (await desk.find([pod.origin]))[0]?.worker;
      // The job must not wait for a directory that may be gone.
      if (typeof facts?.workerId === 'number') await desk.dropOutputs([facts.workerId]);
      pod.isLetGo = true;
    }
    if ((await desk.discard(uid, true)) > 0) return false;
    await this.#removeFiles(pod);
    this.#pods.delete(uid);
    this.#log.info('Pod removed', { pod: uid });
    return true;
  }

  /** Stands behind the changes that are under way. */
  async #removeFiles(pod: TrackedPod): Promise<void> {
    await pod.change(
      (record) => record,
      ({ uid }) => this.files.remove(uid),
    );
    this.#damaged.delete(pod.record.uid);
  }
}

/** What is known of the end of a job that the database has lost. */
function lost({ record }: TrackedPod): Pick<PodFacts, 'status' | 'batchId'> {
  return { status: 'missed', batchId: record.job ?? null };
}

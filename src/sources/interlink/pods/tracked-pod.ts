import type { RetrievedPodData } from '../../../clients/interlink/wire.ts';
import type { OriginKey, WorkerNews } from '../../../worker/news.ts';
import { Age } from '../../../util/clock.ts';
import { WithoutOwn } from '../../../util/own-secrets.ts';
import { messageOf } from '../../../worker/errors.ts';
import { type PodReport, readReport } from '../pod/report.ts';
import { factsAfter, hasEnded, hasLostItsMachine, isHeld, type PodFacts } from './facts.ts';
import type { ReportVersion } from './pod-files.ts';
import type { PodRecord } from './pod-record.ts';
import type { Wait } from './wait.ts';

/** The answer to /create: the id of the job, or the sentence that says why there is none. */
export type Outcome =
  { readonly ok: true; readonly jid: string } | { readonly ok: false; readonly message: string };

/** A Pod that was accepted, as it is known now. */
export class TrackedPod {
  #record: PodRecord;
  #facts: PodFacts | undefined;
  #report: PodReport | undefined;
  #failure: Outcome | undefined;
  /** Changes of its file, one after the other. */
  #changes: Promise<unknown> = Promise.resolve();
  readonly #waiting = new Set<() => void>();
  /** The version of the job's report that was read last. */
  seenReport: ReportVersion | undefined;
  /**
   * Its job has ended, and its files may still come: the end is not shown yet. When this process heard of it: `since`, monotonic ms, and
   * `heardAt`, ms UTC.
   */
  ending: { readonly facts: PodFacts; readonly since: number; readonly heardAt: number } | undefined;
  /** Its files tell of a job of it: it gets no other, also where the database knows none. */
  hadJob: boolean;
  /** Whether that it has its job is being written down, or could not be, which was told. */
  marking: 'due' | 'now' | 'failed' = 'due';
  /** Its job may have lost its machine after its containers had started. */
  isLost = false;
  /** Why its job is to be ended; undefined: it is not. */
  endReason: string | undefined;
  /** The factory knows that its job is to end, and survives a crash with it. */
  isEndAsked = false;
  /** Why its job is held; undefined until that is known. */
  holdReason: string | undefined;
  /** Its job waits for a machine. */
  wait: Wait | undefined;
  /** Why the files of its job, which has ended, are not here yet. */
  unfetched: string | undefined;
  /** All that its job left is needed no more, and its backend knows. */
  isLetGo = false;
  /** How many /create wait for its job. */
  waitingRequests = 0;
  /** Body of its /create, from its acceptance or from its file, while it waits to be planned. */
  body: RetrievedPodData | undefined;
  /** Length of its file with the body, bytes; 0: there is no body. */
  bodyBytes: number;
  /** interLink has heard of its job, as far as is known. */
  isAnswered = false;
  /** Since its end was heard. */
  readonly endAge = new Age();
  /** Its words, which each question of interLink shows. */
  readonly words = new WithoutOwn();
  /** How long interLink has not asked for it, ms. */
  silentFor = 0;

  constructor(record: PodRecord, bodyBytes = 0) {
    this.#record = record;
    this.bodyBytes = bodyBytes;
    this.hadJob = record.job !== undefined;
    this.#facts = record.end as PodFacts | undefined;
    // It was checked before it was written.
    const report = record.report === undefined ? undefined : readReport(JSON.stringify(record.report));
    if (typeof report === 'object') this.#report = report;
  }

  get record(): PodRecord {
    return this.#record;
  }

  get facts(): PodFacts | undefined {
    return this.#facts;
  }

  get report(): PodReport | undefined {
    return this.#report;
  }

  get origin(): OriginKey {
    return { uid: this.#record.uid, index: 0 };
  }

  /** Whether it could not be written down: nothing of it is left, and it gets no job. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  get isDeleted(): boolean {
    return this.#record.deleted === true;
  }

  get hasEnded(): boolean {
    return hasEnded(this.#facts);
  }

  /** Whether it is to be asked for: nothing has been heard of a job of it. */
  get isWanted(): boolean {
    return this.#facts === undefined && !this.hadJob && !this.isDeleted && this.bodyBytes > 0;
  }

  /** Undefined while the job has no id, and may still get one. */
  get outcome(): Outcome | undefined {
    const facts = this.#facts ?? this.ending?.facts;
    if (this.#failure !== undefined) return this.#failure;
    if (this.isDeleted) return { ok: false, message: 'the Pod was deleted' };
    const { job } = this.#record;
    if (facts === undefined) return job === undefined ? undefined : { ok: true, jid: job };
    if (facts.status === 'withdrawn')
      return { ok: false, message: facts.message ?? 'the Pod was ended before it had a job' };
    if (facts.batchId !== null) return { ok: true, jid: facts.batchId };
    if (!hasEnded(facts)) return undefined;
    return { ok: false, message: facts.message ?? `the job was not submitted: it is ${facts.status}` };
  }

  /** The facts after some news, before they are taken. */
  after(news: Pick<WorkerNews, 'worker'>): PodFacts {
    return factsAfter(this.#facts, news);
  }

  take(facts: PodFacts): void {
    this.isLost = hasLostItsMachine(this.#facts, facts);
    if (!isHeld(facts)) this.holdReason = undefined;
    this.#facts = facts;
    this.body = undefined;
    this.#wake();
  }

  /** It could not be accepted. */
  fail(error: unknown): void {
    this.#failure = { ok: false, message: messageOf(error) };
    this.#wake();
  }

  takeReport(report: PodReport): void {
    this.#report = report;
  }

  /** Changes the record, one change after the other. @param save rejects: nothing has changed */
  change(make: (record: PodRecord) => PodRecord, save: (record: PodRecord) => Promise<void>): Promise<void> {
    const changed = this.#changes.then(async () => {
      const next = make(this.#record);
      await save(next);
      this.#record = next;
      if (!this.isWanted) this.body = undefined;
      this.#wake();
    });
    this.#changes = changed.catch(() => undefined);
    return changed;
  }

  /** Waits for the next change, or until `signal` aborts. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      if (signal.aborted) done();
      else {
        this.#waiting.add(done);
        signal.addEventListener('abort', done);
      }
    });
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}

/** The record of a Pod whose job has ended. @param heardAt ms UTC */
export function endedRecord(
  record: PodRecord,
  end: PodFacts,
  report: PodReport | undefined,
  heardAt: number,
): PodRecord {
  return { ...record, end, heardAt, ...(report !== undefined && { report }) };
}

/** The record of a Pod that is to be removed. */
export function deletedRecord(record: PodRecord): PodRecord {
  return { ...record, deleted: true };
}

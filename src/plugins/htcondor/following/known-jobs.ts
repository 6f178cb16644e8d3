import { jobIdText } from '../../../clients/htcondor/classad.ts';
import type { JobEvent } from '../../../clients/htcondor/event-types.ts';
import type { Job } from '../marks.ts';
import { applyEvent, hasEnded, isBehindEnd } from '../state/events.ts';
import type { JobAd } from '../state/types.ts';

/**
 * Jobs that are known by events alone: those of others, ours not yet told of, and ours that ended. More than a log of our own has
 * before it is emptied: the ends of all jobs of a long absence are kept until they are asked for.
 */
const mostOthers = 100_000;
/** So many of them go at once: the first place of a long map is slow to find. */
const forgottenAtOnce = 10_000;
/**
 * Characters of all texts of these jobs: hosts, and reasons of holds and removals. The pool's log tells of the jobs of all users, and
 * does not say whose they are. The jobs told of last keep their texts; what became of the others is known without.
 */
const mostText = 16 * 1024 * 1024;
/** So many queries in a row must agree with the log before it is believed again. */
const doubtful = 10;

const textIn = (ad: JobAd): number =>
  Object.values(ad).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
const withoutText = (ad: JobAd): JobAd =>
  Object.fromEntries(Object.entries(ad).filter(([, value]) => typeof value !== 'string'));

/** A schedd whose queue is restored gives numbers again. A log that is read twice tells of submissions, too: those are earlier than the end. */
const isAfterEnd = ({ kind, time }: JobEvent, { ad }: Job): boolean =>
  kind === 'submit' && hasEnded(ad) && Math.floor((time ?? 0) / 1000) > (ad.EnteredCurrentStatus ?? Infinity);

/**
 * The living jobs of one schedd, as the last query and the log of events since then show them. An event that the query
 * knew already changes nothing for long: all events that follow it are read, too, and the last one is the job as it is.
 */
export class KnownJobs {
  /** By `cluster.proc`. Undefined before the first query. */
  #living: Map<string, Job> | undefined;
  /** Ended by the log, which may be quicker than the queue, and may be wrong. */
  readonly #ended = new Map<string, Job>();
  /** Ads of jobs, also of those that the log alone knows, against whose end something speaks. */
  readonly #doubtful = new WeakSet<JobAd>();
  /** By the log alone: jobs of others, and ours before the submitter has told that they are ours. */
  readonly #others = new Map<string, JobAd>();
  /** Characters of their texts. */
  #text = 0;
  /** Jobs whose change a query showed first: the log has until the next query to show it, too. */
  #suspects = new Set<string>();
  #told = false;
  #doubt = 0;

  /** Undefined before the first query. */
  get living(): ReadonlyMap<string, Job> | undefined {
    return this.#living;
  }

  /** Whether the log has shown that it tells what happens, so that queries may be rare. */
  get logIsTrusted(): boolean {
    return this.#told && this.#doubt === 0;
  }

  /** Ended by the log, and not known to have left the queue. */
  get ended(): ReadonlyMap<string, Job> {
    return this.#ended;
  }

  /** The job as it ended by the log; undefined while it lives, and if it is unknown. */
  endOf(id: string): Job | undefined {
    return this.#ended.get(id);
  }

  /** From now on this end of the log is one only where no history tells another. */
  doubt(id: string): void {
    const job = this.#ended.get(id);
    if (job !== undefined) this.#doubtful.add(job.ad);
  }

  /** Ends, and jobs that are known by the logs alone, are those of another queue. */
  forgetTold(): void {
    this.#ended.clear();
    this.#others.clear();
    this.#text = 0;
    [this.#told, this.#doubt] = [false, 0];
  }

  /** Whether something speaks against this end: the queue, what the log says behind it, or that it may be of another queue. */
  isDoubtful(id: string): boolean {
    const ad = this.#ended.get(id)?.ad ?? this.#others.get(id);
    return ad !== undefined && this.#doubtful.has(ad);
  }

  /** The ad that the log made of a job that no query has shown. */
  adOf(id: string): JobAd | undefined {
    return this.#others.get(id);
  }

  /**
   * Takes in what the log said.
   * @param fresh jobs that were submitted since the last query
   * @returns those that are not as they were; and those that ended, and whose number was given again.
   */
  apply(events: readonly JobEvent[], fresh: ReadonlyMap<string, Job>): readonly Job[] {
    const changed = new Map<string, Job>();
    /** Their numbers were given again since. */
    const followed: Job[] = [];
    for (const event of events) {
      const id = jobIdText(event);
      this.#suspects.delete(id);
      const known = changed.get(id) ?? this.#living?.get(id) ?? this.#ended.get(id);
      const job = known !== undefined && isAfterEnd(event, known) ? undefined : known;
      if (job === undefined) {
        const over = changed.get(id) ?? this.#ended.get(id);
        if (over !== undefined) followed.push(over);
        for (const jobs of [changed, this.#living, this.#ended]) jobs?.delete(id);
        // A schedd that was set up anew counts from the beginning: this one has the number of another.
        const before = event.kind === 'submit' ? undefined : this.#others.get(id);
        this.#remember(id, this.#applied(before ?? {}, event));
        continue;
      }
      const ad = this.#applied(job.ad, event);
      // What the log tells of is in the queue, until its end.
      if (ad !== job.ad) changed.set(id, { ...job, ad, queued: !hasEnded(ad) });
    }
    for (const [id, job] of this.#living === undefined ? [] : fresh) {
      // It may have begun, and ended, before its submission was answered.
      const ad = this.#others.get(id);
      if (ad === undefined) continue;
      this.#forget(id);
      const both = { ...job.ad, ...ad };
      if (this.#doubtful.has(ad)) this.#doubtful.add(both);
      changed.set(id, { ...job, ad: both, queued: !hasEnded(ad) });
    }
    for (const [id, job] of changed) {
      for (const jobs of [this.#living, this.#ended]) jobs?.delete(id);
      (hasEnded(job.ad) ? this.#ended : this.#living)?.set(id, job);
    }
    const all = [...followed, ...changed.values()];
    if (all.length > 0) this.#told = true;
    return all;
  }

  /**
   * Takes in a query.
   * @param ours jobs that live by it, whatever the log said of them
   * @param left those that had been living, and are not in the queue any more
   * @param queued ids of all that are in the queue
   */
  see(ours: ReadonlyMap<string, Job>, left: readonly string[], queued: ReadonlySet<string>): void {
    if (this.#suspects.size > 0) this.#doubt = doubtful;
    else if (this.#doubt > 0) this.#doubt--;
    const others = [...ours].flatMap(([id, { ad }]) => {
      const before = this.#living?.get(id);
      return before === undefined || before.ad.JobStatus === ad.JobStatus ? [] : [id];
    });
    this.#suspects = new Set([...left, ...others]);
    this.#living = new Map(ours);
    for (const id of ours.keys()) this.#forget(id);
    for (const id of this.#ended.keys()) if (!queued.has(id) || ours.has(id)) this.#ended.delete(id);
  }

  /** The ad after an event, which may speak against the end that it has. */
  #applied(before: JobAd, event: JobEvent): JobAd {
    const ad = applyEvent(before, event);
    if (ad === before && isBehindEnd(ad, event)) this.#doubtful.add(ad);
    return ad;
  }

  #remember(id: string, ad: JobAd): void {
    this.#forget(id);
    this.#others.set(id, ad);
    this.#text += textIn(ad);
    if (this.#text > mostText) this.#dropTexts();
    if (this.#others.size < mostOthers + forgottenAtOnce) return;
    for (const oldest of this.#others.keys().take(forgottenAtOnce)) this.#forget(oldest);
  }

  #forget(id: string): void {
    const ad = this.#others.get(id);
    if (ad === undefined) return;
    this.#text -= textIn(ad);
    this.#others.delete(id);
  }

  /** Half of them at once: those told of first are passed each time. */
  #dropTexts(): void {
    for (const [id, ad] of this.#others) {
      if (this.#text <= mostText / 2) return;
      const text = textIn(ad);
      if (text === 0) continue;
      this.#text -= text;
      const short = withoutText(ad);
      if (this.#doubtful.has(ad)) this.#doubtful.add(short);
      this.#others.set(id, short);
    }
  }
}

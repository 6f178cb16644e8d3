import type { HTCondorClient } from '../../clients/htcondor/client.ts';
import { classAdString, jobIdText } from '../../clients/htcondor/classad.ts';
import { isHTCondorError } from '../../clients/htcondor/errors.ts';
import type { Clock } from '../../util/clock.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { toReason } from '../../worker/errors.ts';
import type { Log } from '../contracts/context.ts';
import type { Job } from './marks.ts';

/** The schedd is asked no sooner again who thresher is, ms. */
const askInterval = 60_000;
/** The most users that the log names. */
const mostNamed = 1000;

export interface OwnersParts {
  readonly client: Pick<HTCondorClient, 'whoAmI'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly submissionHost: string;
  /** Jobs whose number `condor_submit` gave to this daemon of late, by `cluster.proc`. */
  readonly fresh: ReadonlyMap<string, unknown>;
}

/** Jobs that have the marks of this factory. */
export interface Parted<J> {
  readonly ours: readonly J[];
  /** Those of other users. A job of ours may be among them, if it was submitted as a user that thresher is no more. */
  readonly others: readonly J[];
}

/**
 * Tells jobs of thresher's from those to which other users of the schedd gave its marks, which `condor_q` shows to all. No user can choose
 * the `Owner` of a job: the schedd makes it of whom it authenticated, and says by `condor_ping` who that is. A queue superuser may choose
 * it, so the owner of a job that `condor_submit` has just numbered for this daemon is one of its own, too.
 */
export class Owners {
  readonly #parts: OwnersParts;
  /** Without their domains. */
  readonly #known = new Set<string>();
  readonly #named = new Set<string>();
  /** Of a schedd that authenticates nobody nothing can be told by owners. */
  #answer: 'none' | 'unauthenticated' | 'user' = 'none';
  #asking: Promise<void> | undefined;
  /** Monotonic ms. */
  #askedAt = -Infinity;

  constructor(parts: OwnersParts) {
    this.#parts = parts;
  }

  /** As long as the schedd has not said who thresher is, all jobs are those of others. */
  async part<J extends Pick<Job, 'id' | 'owner'>>(
    jobs: readonly J[],
    signal: AbortSignal,
  ): Promise<Parted<J>> {
    if (jobs.some((job) => !this.#isOurs(job))) await this.#ask(signal);
    const ours: J[] = [];
    const others: J[] = [];
    for (const job of jobs) (this.#isOurs(job) ? ours : others).push(job);
    for (const job of others) this.#name(job);
    return { ours, others };
  }

  /** Part of a constraint that jobs of ours fulfil by their owner. */
  async where(signal: AbortSignal): Promise<string> {
    if (this.#answer === 'none') await this.#ask(signal);
    if (this.#answer === 'unauthenticated') return 'true';
    return `member(Owner, {${[...this.#known].map(classAdString).join(',')}})`;
  }

  #isOurs({ id, owner = '' }: Pick<Job, 'id' | 'owner'>): boolean {
    if (this.#answer === 'unauthenticated') return true;
    const name = nameOf(owner);
    if (!this.#known.has(name) && this.#parts.fresh.has(jobIdText(id))) this.#known.add(name);
    return this.#known.has(name);
  }

  async #ask(signal: AbortSignal): Promise<void> {
    // A question of another caller may end with that one's signal.
    while (this.#asking !== undefined) {
      await this.#asking.catch(() => undefined);
      signal.throwIfAborted();
    }
    if (this.#parts.clock.monotonic() - this.#askedAt < askInterval) return;
    this.#asking = this.#askNow(signal).finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
  }

  async #askNow(signal: AbortSignal): Promise<void> {
    const { client, clock, log, submissionHost } = this.#parts;
    try {
      const user = await client.whoAmI(signal);
      if (user !== undefined) this.#known.add(nameOf(user));
      if (user === undefined && this.#answer === 'none') {
        this.#answer = 'unauthenticated';
        log.warn('the schedd authenticates nobody: the marks alone say whose a job is', { submissionHost });
      } else if (user !== undefined) this.#answer = 'user';
    } catch (error) {
      if (signal.aborted || !isHTCondorError(error)) throw error;
      const facts = { submissionHost, ...toReason(error) };
      log.warn('the schedd does not say which user thresher is: only jobs whose number it has count', facts);
    }
    this.#askedAt = clock.monotonic();
  }

  #name({ id, owner = '' }: Pick<Job, 'id' | 'owner'>): void {
    if (this.#answer === 'none' || this.#named.has(owner) || this.#named.size >= mostNamed) return;
    this.#named.add(owner);
    const { log, submissionHost } = this.#parts;
    const facts = { submissionHost, job: jobIdText(id), owner: fromOutside(owner).slice(0, 200) };
    log.warn('another user has jobs with the marks of this factory: they are no workers', facts);
  }
}

/** A user without the domain. */
export function nameOf(user: string): string {
  return user.split('@', 1)[0] ?? user;
}

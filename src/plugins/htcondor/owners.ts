import type { HTCondorClient } from '../../clients/htcondor/client.ts';
import { isHTCondorError } from '../../clients/htcondor/errors.ts';
import { classAdString, type JobId, jobIdText, whereJobs } from '../../clients/htcondor/classad.ts';
import type { Clock } from '../../util/clock.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { toReason } from '../../worker/errors.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Log } from '../contracts/context.ts';

/** After so long the schedd is asked again who we are, ms: a token may be replaced by that of another user, or the schedd be away. */
const again = { known: 3_600_000, unknown: 600_000 };
/** The most jobs that are expected at a time, and users that the log has named. */
const most = 10_000;

export interface OwnersParts {
  readonly client: Pick<HTCondorClient, 'whoAmI'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly submissionHost: string;
  /** Whether this daemon has submitted the job, and has not seen it since. */
  readonly isFresh: (id: string) => boolean;
}

/**
 * Whose jobs on a schedd can be ours. Everybody who may submit there can give a job our marks, which `condor_q` shows to all: such a job would
 * stand for a worker, and its ad would name the files that are read as the worker's. `Owner` is an attribute that no user can choose.
 * It is that of the user as whom the schedd knows us. A transform of the schedd, or a superuser's `+Owner`, may make it another one,
 * so the owner of a job whose number `condor_submit` gave to us is one of ours, too.
 */
export class Owners {
  readonly #parts: OwnersParts;
  /** Names without their domains. */
  readonly #known = new Set<string>();
  /** Numbers of jobs that the database has, of workers that were asked for: the oldest go first. */
  readonly #expected = new Set<string>();
  readonly #told = new Set<string>();
  #asking: Promise<void> | undefined;
  /** Monotonic ms. */
  #askAgain = -Infinity;

  constructor(parts: OwnersParts) {
    this.#parts = parts;
  }

  /** Asks the schedd who we are, if it has not said so of late. Where it does not say it, the jobs that we have submitted do. */
  async know(signal: AbortSignal): Promise<void> {
    if (this.#parts.clock.monotonic() < this.#askAgain) return;
    this.#asking ??= this.#ask(signal).finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
  }

  /** The jobs of these workers are ours by their numbers. */
  expect(workers: readonly Pick<Worker, 'handle'>[]): void {
    for (const { handle } of workers) {
      if (handle === undefined) continue;
      this.#expected.delete(handle.batchID);
      this.#expected.add(handle.batchID);
    }
    for (const id of this.#expected) {
      if (this.#expected.size <= most) return;
      this.#expected.delete(id);
    }
  }

  /** Whether a job with our marks is ours. True as long as nothing is known of us. */
  isOurs(id: JobId, owner: string | undefined): boolean {
    // A schedd gives each job one; where it was not asked for, the caller knows the job.
    if (owner === undefined) return true;
    const name = nameOf(owner);
    if (this.#known.has(name)) return true;
    const text = jobIdText(id);
    if (this.#expected.has(text) || this.#parts.isFresh(text)) {
      this.#known.add(name);
      return true;
    }
    if (this.#known.size === 0) return true;
    this.#tell(text, name);
    return false;
  }

  /** Constraint of a question that has a limit, so that jobs of others take no places of ours. @param ids of jobs that are ours in any case */
  constraint(ids: readonly JobId[] = []): string {
    if (this.#known.size === 0) return 'true';
    const names = [...this.#known].map(classAdString).join(',');
    return `(member(Owner, {${names}}) || ${ids.length === 0 ? 'false' : whereJobs(ids)})`;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { client, clock, log, submissionHost } = this.#parts;
    try {
      const who = await client.whoAmI(signal);
      if (who !== undefined) this.#known.add(nameOf(who));
      this.#askAgain = clock.monotonic() + (who === undefined ? again.unknown : again.known);
    } catch (error) {
      if (signal.aborted) return;
      this.#askAgain = clock.monotonic() + again.unknown;
      if (!isHTCondorError(error)) throw error;
      log.debug('the schedd does not say who we are', { submissionHost, ...toReason(error) });
    }
  }

  #tell(job: string, owner: string): void {
    if (this.#told.has(owner) || this.#told.size >= most) return;
    this.#told.add(owner);
    const { log, submissionHost } = this.#parts;
    const facts = { submissionHost, job, owner: fromOutside(owner).slice(0, 200) };
    log.warn('jobs of another user have the marks of this factory, and are left alone', facts);
  }
}

function nameOf(user: string): string {
  return user.split('@', 1)[0] ?? user;
}

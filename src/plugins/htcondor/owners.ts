import { dirname } from 'node:path';
import type { HTCondorClient } from '../../clients/htcondor/client.ts';
import { classAdString, jobIdText } from '../../clients/htcondor/classad.ts';
import { type HTCondorError, isHTCondorError } from '../../clients/htcondor/errors.ts';
import type { Clock } from '../../util/clock.ts';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../util/files.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import { NotPlainFile, readPlainFile } from '../../util/plain-file.ts';
import { toReason } from '../../worker/errors.ts';
import type { Log } from '../contracts/context.ts';
import type { Job } from './marks.ts';

/** How soon the schedd is asked again who thresher is, ms. */
const askInterval = { once: 60_000, unanswered: 5000 };
/** The most users that the log names. */
const mostNamed = 1000;
/** bytes */
const longestFile = 65_536;

export interface OwnersParts {
  readonly client: Pick<HTCondorClient, 'whoAmI'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly submissionHost: string;
  /** Jobs whose number `condor_submit` gave to this daemon of late, by `cluster.proc`. */
  readonly fresh: ReadonlyMap<string, unknown>;
  /** In the state directory: the users that thresher was so far. */
  readonly file: string;
}

/** Jobs that have the marks of this factory. */
export interface Parted<J> {
  readonly ours: readonly J[];
  /** Those of other users. A job of ours may be among them, if it was submitted as a user that is not known any more. */
  readonly others: readonly J[];
}

/**
 * Tells jobs of thresher's from those to which other users of the schedd gave its marks, which `condor_q` shows to all. No user can choose
 * the `Owner` of a job: the schedd makes it of whom it authenticated, and says by `condor_ping` who that is. A queue superuser may choose
 * it, so the owner of a job that `condor_submit` has just numbered for this daemon is one of its own, too.
 */
export class Owners {
  readonly #parts: OwnersParts;
  /** Without their domains, as `Owner` has none: two users of one name share its account on the machine, and their files. */
  readonly #known = new Set<string>();
  /** How many of them the file has. Undefined: it was not read yet. */
  #kept: number | undefined;
  readonly #named = new Set<string>();
  /** A schedd that authenticates nobody gives all jobs the same owner, or any. */
  #answer: 'none' | 'unauthenticated' | 'user' = 'none';
  #unanswered: HTCondorError | undefined;
  #asking: Promise<void> | undefined;
  /** Monotonic ms. */
  #askedAt = -Infinity;

  constructor(parts: OwnersParts) {
    this.#parts = parts;
  }

  /** Why this daemon has no answer yet who thresher is, though it asked. The users that it was before are known even so. */
  get unanswered(): HTCondorError | undefined {
    return this.#unanswered;
  }

  /** @throws what the file system says: without the users that thresher was, its own jobs would be those of others */
  async part<J extends Pick<Job, 'id' | 'owner'>>(
    jobs: readonly J[],
    signal: AbortSignal,
  ): Promise<Parted<J>> {
    await this.#recall();
    for (const { id, owner = '' } of jobs)
      if (owner !== '' && this.#parts.fresh.has(jobIdText(id))) this.#known.add(nameOf(owner));
    const isKnown = ({ owner = '' }: Pick<Job, 'owner'>) => this.#known.has(nameOf(owner));
    if (!jobs.every(isKnown)) await this.#ask(signal);
    await this.#keep();
    if (this.#answer === 'unauthenticated') return { ours: jobs, others: [] };
    const others = jobs.filter((job) => !isKnown(job));
    for (const job of others) this.#name(job);
    return { ours: jobs.filter(isKnown), others };
  }

  /** Part of a constraint that jobs of ours fulfil by their owner; `true` where all do. It is an error for a job without an owner. @throws as `part` does */
  async where(signal: AbortSignal): Promise<string> {
    await this.#recall();
    if (this.#answer === 'none') await this.#ask(signal);
    if (this.#answer === 'unauthenticated') return 'true';
    return `member(splitUserName(Owner)[0], {${[...this.#known].map(classAdString).join(',')}})`;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    // A question of another caller may end with that one's signal.
    while (this.#asking !== undefined) {
      await this.#asking.catch(() => undefined);
      signal.throwIfAborted();
    }
    const interval = this.#answer === 'none' ? askInterval.unanswered : askInterval.once;
    if (this.#parts.clock.monotonic() - this.#askedAt < interval) return;
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
      this.#unanswered = undefined;
    } catch (error) {
      if (signal.aborted || !isHTCondorError(error)) throw error;
      if (this.#answer === 'none') {
        if (this.#unanswered?.message !== error.message)
          log.warn('the schedd does not say which user thresher is', { submissionHost, ...toReason(error) });
        this.#unanswered = error;
      }
    }
    this.#askedAt = clock.monotonic();
  }

  async #recall(): Promise<void> {
    if (this.#kept !== undefined) return;
    const names = await readNames(this.#parts.file);
    for (const name of names) this.#known.add(name);
    this.#kept ??= names.length;
  }

  /** What is not on the disk is known all the same, and is written with the next look. */
  async #keep(): Promise<void> {
    const names = [...this.#known].toSorted();
    if (names.length === this.#kept) return;
    const { file, log } = this.#parts;
    try {
      await ensureDirectory(dirname(file));
      await writeFileAtomically(file, `${JSON.stringify(names)}\n`);
      this.#kept = names.length;
    } catch (error) {
      log.warn('the users that thresher is on a schedd are not kept', { file, ...toReason(error) });
    }
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

/** None where the file is not as thresher wrote it: users are learnt anew. */
async function readNames(file: string): Promise<readonly string[]> {
  try {
    const { bytes } = await readPlainFile(file, { largest: longestFile, links: 'refuse' });
    const read: unknown = JSON.parse(bytes.toString('utf8'));
    const names: readonly unknown[] = Array.isArray(read) ? read : [];
    return names.filter((name): name is string => typeof name === 'string' && name !== '');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || error instanceof SyntaxError || error instanceof NotPlainFile) return [];
    throw error;
  }
}

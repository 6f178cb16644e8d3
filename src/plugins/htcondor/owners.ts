import { dirname } from 'node:path';
import type { HTCondorClient } from '../../clients/htcondor/client.ts';
import { classAdString, jobIdText } from '../../clients/htcondor/classad.ts';
import { HTCondorError, isHTCondorError } from '../../clients/htcondor/errors.ts';
import type { Clock } from '../../util/clock.ts';
import { unlessAborted } from '../../util/deadline.ts';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../util/files.ts';
import { isObject } from '../../util/json.ts';
import { beginningFromOutside } from '../../util/beginning.ts';
import { readPlainFile } from '../../util/plain-file.ts';
import { messageOf, ThresherError, toReason } from '../../worker/errors.ts';
import type { Log } from '../contracts/context.ts';
import type { Job } from './marks.ts';

/** How soon the schedd is asked again who thresher is, ms. */
const askInterval = { once: 60_000, unanswered: 5000 };
/** How soon users that the disk did not take are written again, ms. */
const keepInterval = 60_000;
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
  /** In the state directory: what is still to be known after a restart. */
  readonly file: string;
}

/** Facts of a schedd that thresher must still know after a restart. */
interface Memory {
  /** The users that it was there. */
  readonly users: readonly string[];
  /** Whether the schedd has named one of them: a schedd that does so authenticates its users. */
  readonly authenticates: boolean;
}

/** Whose the jobs are, at one moment. */
export interface Ownership {
  /** Part of a constraint that jobs of ours fulfil by their owner; `true` where all do. It is an error for a job without an owner. */
  readonly where: string;
  /** Why the schedd has not said who thresher is, though it was asked: jobs of ours may be among those of others. */
  readonly unanswered: HTCondorError | undefined;
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
  /** The schedd has named a user, to this daemon or an earlier one. */
  #authenticates = false;
  /** The text of the file. Undefined: it was not read yet. */
  #kept: string | undefined;
  #keeping: Promise<void> | undefined;
  /** When it is written again after the disk did not take it, monotonic ms. */
  #keepAgain: number | undefined;
  /** The log has told of these. */
  readonly #told = new Set<string>();
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

  /** Whether a job is of another user, by what is known now: to be asked while jobs come that are too many to be kept. */
  isOther({ id, owner = '' }: Pick<Job, 'id' | 'owner'>): boolean {
    const isNamed = this.#answer === 'user' && owner !== '';
    return isNamed && !this.#known.has(nameOf(owner)) && !this.#parts.fresh.has(jobIdText(id));
  }

  /** @throws ThresherError `htcondor-owners-file`: without the users that thresher was, its own jobs would be those of others */
  async part<J extends Pick<Job, 'id' | 'owner' | 'isStranger'>>(
    jobs: readonly J[],
    signal: AbortSignal,
  ): Promise<Parted<J>> {
    await this.#recall();
    for (const { id, owner = '' } of jobs)
      if (owner !== '' && this.#parts.fresh.has(jobIdText(id))) this.#known.add(nameOf(owner));
    // Of a stranger nothing was kept: whoever thresher is now, the next look tells more.
    const isKnown = ({ owner = '', isStranger }: Pick<Job, 'owner' | 'isStranger'>) =>
      isStranger !== true && this.#known.has(nameOf(owner));
    if (!jobs.every(isKnown)) await this.#ask(signal);
    await this.#keep();
    if (this.#answer === 'unauthenticated') return { ours: jobs, others: [] };
    const others = jobs.filter((job) => !isKnown(job));
    for (const job of others) this.#name(job);
    return { ours: jobs.filter(isKnown), others };
  }

  /** @throws as `part` does */
  async now(signal: AbortSignal): Promise<Ownership> {
    await this.#recall();
    if (this.#answer === 'none') await this.#ask(signal);
    const names = [...this.#known].map(classAdString).join(',');
    const where = this.#answer === 'unauthenticated' ? 'true' : `member(splitUserName(Owner)[0], {${names}})`;
    return { where, unanswered: this.#unanswered };
  }

  async #ask(signal: AbortSignal): Promise<void> {
    // A question of another caller may end with that one's signal.
    while (this.#asking !== undefined) {
      const answered = this.#asking.catch(() => undefined);
      await unlessAborted(answered, signal);
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
      if (user !== undefined) {
        this.#known.add(nameOf(user));
        [this.#answer, this.#authenticates] = ['user', true];
      } else if (this.#answer === 'none') {
        if (this.#authenticates) throw this.#lapsed();
        this.#answer = 'unauthenticated';
        log.warn('the schedd authenticates nobody: the marks alone say whose a job is', { submissionHost });
      }
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

  /** A login that is refused now and then must not make the jobs of all users ours. */
  #lapsed(): HTCondorError {
    const { submissionHost, file } = this.#parts;
    const message = `condor_ping says that ${submissionHost} authenticates nobody, though it has named the user of thresher before: the login fails. If it authenticates nobody from now on, stop the daemon and remove ${file}`;
    return new HTCondorError({ code: 'condor-answer', message, maybeDone: false });
  }

  async #recall(): Promise<void> {
    if (this.#kept !== undefined) return;
    const read = await readMemory(this.#parts.file);
    for (const name of read.users) this.#known.add(nameOf(name));
    this.#authenticates ||= read.authenticates;
    // Another caller may have read it, and written it anew, meanwhile.
    this.#kept ??= read.text;
  }

  get #text(): string {
    const memory: Memory = { users: [...this.#known].toSorted(), authenticates: this.#authenticates };
    return this.#known.size === 0 && !this.#authenticates ? '' : `${JSON.stringify(memory)}\n`;
  }

  /** What is not on the disk is known all the same, and is written with a later look. */
  async #keep(): Promise<void> {
    if (this.#text === this.#kept || (this.#keepAgain ?? 0) > this.#parts.clock.monotonic()) return;
    this.#keeping ??= this.#write().finally(() => {
      this.#keeping = undefined;
    });
    await this.#keeping;
  }

  async #write(): Promise<void> {
    const { file, log, clock } = this.#parts;
    const text = this.#text;
    try {
      await ensureDirectory(dirname(file));
      await writeFileAtomically(file, text);
      [this.#kept, this.#keepAgain] = [text, undefined];
    } catch (error) {
      if (this.#keepAgain === undefined)
        log.warn('the users that thresher is on a schedd are not kept', { file, ...toReason(error) });
      this.#keepAgain = clock.monotonic() + keepInterval;
    }
  }

  #name({ id, owner = '' }: Pick<Job, 'id' | 'owner'>): void {
    if (this.#answer === 'none' || this.#told.has(owner) || this.#told.size >= mostNamed) return;
    this.#told.add(owner);
    const { log, submissionHost } = this.#parts;
    const facts = { submissionHost, job: jobIdText(id), owner: beginningFromOutside(owner, 200) };
    log.warn('another user has jobs with the marks of this factory: they are no workers', facts);
  }
}

/** A user without the domain. */
export function nameOf(user: string): string {
  return user.split('@', 1)[0] ?? user;
}

/** @throws ThresherError `htcondor-owners-file` where it cannot be read, or is not as thresher wrote it */
async function readMemory(file: string): Promise<Memory & { readonly text: string }> {
  try {
    const { bytes } = await readPlainFile(file, { largest: longestFile, links: 'refuse' });
    const text = bytes.toString('utf8');
    const read: unknown = JSON.parse(text);
    if (!isMemory(read)) throw new TypeError('it is of another form');
    return { ...read, text };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { users: [], authenticates: false, text: '' };
    const form = JSON.stringify({ users: ['NAME'], authenticates: true } satisfies Memory);
    const message = `${file} cannot be read (${messageOf(error)}): it has to have the users as whom thresher has submitted to this schedd, without their domains, as ${form}`;
    throw new ThresherError('htcondor-owners-file', message);
  }
}

function isMemory(read: unknown): read is Memory {
  if (!isObject(read)) return false;
  const { users, authenticates } = read;
  const isName = (name: unknown) => typeof name === 'string' && name !== '';
  return Array.isArray(users) && users.every(isName) && typeof authenticates === 'boolean';
}

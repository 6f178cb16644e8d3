import { readdir } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import { within } from '../../util/within.ts';
import { rememberCredential, rememberTokens } from '../credentials/credential.ts';
import { condorEnvironment } from '../credentials/environment.ts';
import { fileVersion, onSecretFile, readSecretFile } from '../credentials/files.ts';
import { NotStarted, type ProgramEnd, runProgram } from '../program.ts';
import { type Called, failureOf, HTCondorError } from './errors.ts';
import { Turns } from './turns.ts';

/** The address of a schedd, and the identity to ask it with. Queues that share all of it share one client. */
export interface ScheddPlace {
  /** For `-name`; undefined for the local one. */
  readonly name?: string;
  /** Its collector, for `-pool`: "cm.example.org:9618". */
  readonly pool?: string;
  /** Directory of IDTOKENS; else that of HTCondor's own configuration. */
  readonly tokenDirectory?: string;
  /** For CONDOR_CONFIG; else the daemon's own. */
  readonly configFile?: string;
  /** Directory of HTCondor's commands; else they come from the PATH. */
  readonly toolDirectory?: string;
  /** For X509_USER_PROXY. */
  readonly proxyFile?: string;
}

export interface ToolsOptions {
  readonly place: ScheddPlace;
  readonly clock: Clock;
  /** The daemon's own; only what HTCondor needs of it is handed on. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Commands at once. Default 4: a schedd answers one after the other anyway. */
  readonly atOnce?: number;
  /** Hears all that the commands wrote to their standard error, if the environment asks for more than errors by `_CONDOR_TOOL_DEBUG`. */
  readonly onDebug?: (command: string, said: string) => void;
}

/** Characters of the output of a command, and of one that is taken piece by piece: the ads of a million jobs. */
const longestAnswer = 1024 * 1024;
const longestStream = 1024 * 1024 * 1024;

/** What is kept of one answer: of some hundreds of thousands of jobs of ours, each with some hundred characters. */
export const mostKept = { ads: 1_000_000, characters: 256 * 1024 * 1024 } as const;

/** Characters that a value counts beside its text. */
const valueSize = 8;

/** An answer that is larger than the memory has room for. Its message goes on a sentence about the command. */
class AnswerTooLarge extends Error {}

/** What is kept of the ads of one answer, bounded: who answers, or has jobs, must not fill the memory. */
export class Kept<T> {
  readonly all: T[] = [];
  #characters = 0;

  /** @param one undefined: nothing is kept of it */
  add(one: T | undefined): void {
    if (one === undefined) return;
    this.all.push(one);
    this.#characters += sizeOf(one);
    const { ads, characters } = mostKept;
    if (this.all.length > ads || this.#characters > characters)
      throw new AnswerTooLarge(
        `answers with more than thresher keeps of one answer: ${ads} ads, and ${characters} characters of what it reads of them. Right is less: fewer jobs with the marks of this factory, or fewer ads of machines`,
      );
  }
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return valueSize + value.length;
  if (typeof value !== 'object' || value === null) return valueSize;
  let size = valueSize;
  if (value instanceof Map) for (const [name, one] of value) size += sizeOf(name) + sizeOf(one);
  else for (const one of Object.values(value)) size += sizeOf(one);
  return size;
}

export interface Tool {
  readonly command: `condor_${string}`;
  readonly args: readonly string[];
  /**
   * Its target: the schedd of the place; that one, named by its own arguments; the pool, so that it gets `-pool` alone; or nothing but files
   * and addresses in its own arguments. Default: the schedd.
   */
  readonly target?: 'schedd' | 'named-schedd' | 'pool' | 'files';
  /** The schedd is called by the name of the place, whatever `callAt` said. */
  readonly byFirstName?: boolean;
  /** Whether it changes anything: what is killed may have done so. */
  readonly changes: boolean;
  /** ms, from the moment it runs. */
  readonly timeLimit: number;
  readonly input?: string;
  readonly directory?: string;
  /** More variables; none of them replaces one that every command gets. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Characters; default 1 MB, and with `onOutput` 1 GB. */
  readonly outputLimit?: number;
  /** `latin1`: each character of the output is one byte. Default: text in UTF-8. */
  readonly encoding?: 'latin1';
  readonly onOutput?: (text: string) => void;
  readonly onStart?: (pid: number) => void;
}

/** "schedd a@b of pool c" */
function placeText({ name, pool }: Pick<ScheddPlace, 'name' | 'pool'>): string {
  const schedd = name === undefined ? 'the local schedd' : `schedd ${name}`;
  return pool === undefined ? schedd : `${schedd} of pool ${pool}`;
}

/** "pool c", for a command that asks the collector. */
function poolText({ pool }: Pick<ScheddPlace, 'pool'>): string {
  return pool === undefined ? 'the pool of this machine' : `pool ${pool}`;
}

/** Variables that name the file by which the commands log in, and the directory of such files. */
const loginFile =
  /^(_condor_(scitokens_file|auth_ssl_client_keyfile)|bearer_token_file|x509_user_(proxy|key))$/i;
const loginDirectory = /^_condor_sec_token_directory$/i;
/** How long commands wait for a look at their logins, ms: a file system that hangs holds up no command for longer. */
const patience = 2000;
/** How long a look counts, ms: a busy schedd gets many commands in a second, and a directory may have many tokens. */
const looksCount = 1000;
/** Files of a directory that are looked at, the first in the order of their names. No site has as many tokens for one user. */
const mostTokenFiles = 100;

/** A look at a login, or at a directory of them. */
interface Look {
  /** Monotonic ms; undefined: it is under way. */
  overAt?: number;
  /** Versions of its files as they were last read, which the next look begins with. */
  readonly versions: ReadonlyMap<string, string>;
  /** Comes when it is over, or when nobody is to wait for it any longer. */
  readonly known: Promise<void>;
}

/** The last one of each path, of this whole process: its commands are of many queues and have few logins. Each clock has its own. */
const looks = new WeakMap<Clock, Map<string, Look>>();

/** One look at a time, whoever asks. @returns when it may be gone on */
function lookAt(path: string, isDirectory: boolean, clock: Clock): Promise<void> {
  const all = looks.get(clock) ?? new Map<string, Look>();
  looks.set(clock, all);
  const last = all.get(path);
  const isOld = last?.overAt !== undefined && clock.monotonic() - last.overAt >= looksCount;
  if (last !== undefined && !isOld) return last.known;
  const versions = new Map<string, string>();
  const over = (async () => {
    for (const file of isDirectory ? await tokenFiles(path) : [path]) {
      const version = await fileVersion(file);
      const isKnown = last?.versions.get(file) === version || (await isRemembered(file, isDirectory));
      if (isKnown) versions.set(file, version);
    }
  })().finally(() => {
    look.overAt = clock.monotonic();
  });
  const known = within(clock, patience, over).then(() => undefined);
  const look: Look = { versions, known };
  all.set(path, look);
  return known;
}

async function tokenFiles(directory: string): Promise<readonly string[]> {
  // One that cannot be read is HTCondor's to complain of, as is such a file.
  const names = await onSecretFile(directory, 'reading', () => readdir(directory)).catch(() => []);
  return names
    .sort()
    .slice(0, mostTokenFiles)
    .map((name) => join(directory, name));
}

async function isRemembered(file: string, isOfDirectory: boolean): Promise<boolean> {
  try {
    const { bytes } = await readSecretFile(file);
    if (isOfDirectory) rememberTokens(bytes, file);
    else rememberCredential(bytes, file);
    return true;
  } catch {
    return false;
  }
}

/** HTCondor then writes the category of each line, by which errors are told from the rest. */
const withCategories = 'D_CAT';

/** Runs the commands of HTCondor for one schedd, so many at once. */
export class CondorTools {
  readonly #first: Pick<ScheddPlace, 'name' | 'pool'>;
  #place: Pick<ScheddPlace, 'name' | 'pool'>;
  readonly #toolDirectory: string | undefined;
  readonly #clock: Clock;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #turns: Turns;
  readonly #onDebug: ToolsOptions['onDebug'];

  constructor({ place, clock, environment, atOnce = 4, onDebug }: ToolsOptions) {
    [this.#first, this.#place] = [place, place];
    this.#toolDirectory = place.toolDirectory;
    this.#clock = clock;
    this.#turns = new Turns(atOnce);
    const { configFile, tokenDirectory, proxyFile } = place;
    const { KRB5CCNAME: ticket, _CONDOR_TOOL_DEBUG: debug = '' } = environment;
    this.#onDebug = debug === '' ? undefined : onDebug;
    this.#environment = {
      ...condorEnvironment(environment),
      // Without it, and `-debug`, some say "(null)" where they were not let in.
      _CONDOR_TOOL_DEBUG: debug === '' ? 'D_ERROR' : `${debug} ${withCategories}`,
      // The tools of HTCondor alone log in by it.
      ...(ticket !== undefined && { KRB5CCNAME: ticket }),
      ...(configFile !== undefined && { CONDOR_CONFIG: configFile }),
      ...(tokenDirectory !== undefined && { _CONDOR_SEC_TOKEN_DIRECTORY: tokenDirectory }),
      ...(proxyFile !== undefined && { X509_USER_PROXY: proxyFile }),
    };
  }

  /** From now on commands call this schedd, with the same identity. Those that run go on with the one that they began with. */
  callAt(place: Pick<ScheddPlace, 'name' | 'pool'>): void {
    this.#place = place;
  }

  /**
   * Waits for its turn and runs a command with the schedd as its target. A status other than 0 is not a failure yet.
   * @throws HTCondorError `condor-no-tool`, `condor-timeout`, `condor-given-up`, `condor-failed`, `condor-answer`.
   */
  async run(tool: Tool, signal: AbortSignal): Promise<ProgramEnd> {
    const called = this.called(tool);
    const what = `${called.command} for ${called.place}`;
    if (!(await this.#turns.begin(signal))) {
      throw new HTCondorError({
        code: 'condor-given-up',
        message: `${what} was not started, because the daemon gave it up`,
        maybeDone: false,
      });
    }
    try {
      // Before it runs: what it writes may go into a message while it still does.
      await this.#rememberLogins(signal);
      const end = await this.#started(tool, signal);
      if (this.#onDebug !== undefined && end.stderr !== '') this.#onDebug(called.command, end.stderr);
      this.#checkEnd(what, tool, end);
      return end;
    } catch (error) {
      if (error instanceof NotStarted) throw notStarted(tool.command, error, signal);
      if (error instanceof AnswerTooLarge) {
        const message = `${what} ${error.message}`;
        throw new HTCondorError({ code: 'condor-answer', message, maybeDone: tool.changes });
      }
      if (error instanceof SyntaxError) {
        const message = `${what} wrote no list of ads: ${error.message}`;
        throw new HTCondorError(
          { code: 'condor-answer', message, maybeDone: tool.changes },
          {},
          { cause: error },
        );
      }
      throw error;
    } finally {
      this.#turns.end();
    }
  }

  /**
   * Runs a command whose status other than 0 is a failure.
   * @throws HTCondorError
   */
  async succeed(tool: Tool, signal: AbortSignal): Promise<ProgramEnd> {
    const end = await this.run(tool, signal);
    if (end.status !== 0) throw this.failure(tool, end);
    return end;
  }

  /** The failure of a command that ended with another status than 0. */
  failure(tool: Tool, { stderr, status }: ProgramEnd): HTCondorError {
    return failureOf(this.called(tool), stderr, `exit status ${status ?? '?'}`);
  }

  called(tool: Tool): Called {
    const { command, changes, input, target = 'schedd' } = tool;
    const isSchedd = target === 'schedd' || target === 'named-schedd';
    const at = this.#placeOf(tool);
    const place = isSchedd ? placeText(at) : poolText(at);
    return { command, place, changes, ...(command === 'condor_submit' && { submitted: input ?? '' }) };
  }

  /** From now on no text from outside shows the logins of the commands. Others renew them. */
  async #rememberLogins(signal: AbortSignal): Promise<void> {
    const known = Object.entries(this.#environment).flatMap(([name, path]) => {
      const isDirectory = loginDirectory.test(name);
      const isLogin = isAbsolute(path) && (isDirectory || loginFile.test(name));
      return isLogin ? [lookAt(path, isDirectory, this.#clock)] : [];
    });
    if (known.length === 0) return;
    const all = Promise.all(known).then(() => undefined);
    await within(this.#clock, patience, all, signal);
  }

  #placeOf({ byFirstName = false }: Tool): Pick<ScheddPlace, 'name' | 'pool'> {
    return byFirstName ? this.#first : this.#place;
  }

  #started(tool: Tool, signal: AbortSignal): Promise<ProgramEnd> {
    const { name, pool } = this.#placeOf(tool);
    const toolDirectory = this.#toolDirectory;
    const most = tool.onOutput === undefined ? longestAnswer : longestStream;
    const { command, args, outputLimit = most, environment, target = 'schedd', ...more } = tool;
    const place = [
      ...(name === undefined || target !== 'schedd' ? [] : ['-name', name]),
      ...(pool === undefined || target === 'files' ? [] : ['-pool', pool]),
    ];
    return runProgram({
      ...more,
      command: toolDirectory === undefined ? command : join(toolDirectory, command),
      args: target === 'files' ? args : ['-debug', ...place, ...args],
      environment: { ...environment, ...this.#environment },
      outputLimit,
      clock: this.#clock,
      signal,
    });
  }

  #checkEnd(what: string, { changes, timeLimit }: Tool, { killed, endedBy }: ProgramEnd): void {
    if (killed === 'time') {
      const message = `${what} did not end within ${timeLimit / 1000} s and was killed`;
      throw new HTCondorError({ code: 'condor-timeout', message, maybeDone: changes });
    }
    if (killed === 'given-up') {
      const message = `${what} was ended, because the daemon gave it up`;
      throw new HTCondorError({ code: 'condor-given-up', message, maybeDone: changes });
    }
    if (killed === 'output') {
      const message = `${what} wrote more than it ever should and was killed`;
      throw new HTCondorError({ code: 'condor-answer', message, maybeDone: changes });
    }
    if (endedBy !== null) {
      const message = `${what} was ended by ${endedBy}`;
      throw new HTCondorError({ code: 'condor-failed', message, maybeDone: changes });
    }
  }
}

function notStarted(command: string, error: NotStarted, signal: AbortSignal): HTCondorError {
  const code = signal.aborted ? 'condor-given-up' : 'condor-no-tool';
  return new HTCondorError(
    { code, message: `${command} ${error.message}`, maybeDone: false },
    {},
    { cause: error },
  );
}

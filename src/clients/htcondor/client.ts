import { fromOutside, withoutOwn } from '../../util/own-secrets.ts';
import { withoutKeys } from '../../util/secrets.ts';
import { type AdText, AdTexts, ownCopy } from './ad-text.ts';
import { type ActionCounts, actionCounts, plainReason, submittedJobs, userOfPing } from './tool-texts.ts';
import { classAdName, type JobId, jobIdText } from './classad.ts';
import { HTCondorError } from './errors.ts';
import { type Ad, JsonObjects } from './json-objects.ts';
import { Rows } from './rows.ts';
import { CondorTools, Kept, type ScheddPlace, type Tool, type ToolsOptions } from './tools.ts';

/** ms. Transfers take as long as their files are big. */
const timeLimits = { ping: 30_000, ask: 60_000, change: 120_000, transfer: 600_000 } as const;

export interface ClientOptions extends ToolsOptions {
  /** ms; tests have less patience. */
  readonly timeLimits?: Partial<Record<keyof typeof timeLimits, number>>;
}

export interface SubmitOptions {
  /** Hands all files over to the schedd, as a remote one needs it. */
  readonly spool?: boolean;
  /** Base of relative paths in the text. Default "/". */
  readonly directory?: string;
  /** Variables that it gets beside those that every command of HTCondor gets: for `$ENV(NAME)` in the text. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Is told the id of the process: one that a killed daemon left must be ended before anything is tried again. */
  readonly onStart?: (pid: number) => void;
}

export type { ActionCounts } from './tool-texts.ts';

/** The most that one machine of a pool has; machines that have the most of one need not have it of another. */
export interface MachineSizes {
  readonly cpus: number;
  readonly gpus: number;
  /** MiB. */
  readonly memory: number;
}

/** What a schedd says of its queue. */
export interface QueueOfSchedd {
  /** When the queue was made, s. */
  readonly birth: number;
  /** When the schedd was started, s. */
  readonly started: number;
  /** What the schedd calls itself (`SCHEDD_NAME`), by whichever name it was asked. */
  readonly name: string;
}

/** What no machine has, though its own word says so. */
const mostOfMachine = 1e9;

export type JobAction = 'remove' | 'hold' | 'release';

const commands = { remove: 'condor_rm', hold: 'condor_hold', release: 'condor_release' } as const;

/**
 * One schedd, through HTCondor's own commands. Constraints are expressions that the caller has made of safe parts (see
 * `classad.ts`). Every call throws HTCondorError; its `maybeDone` says whether something may have happened all the same.
 */
export class HTCondorClient {
  readonly #tools: CondorTools;
  readonly #limits: Record<keyof typeof timeLimits, number>;
  /** The local one has none. */
  #name: string;

  constructor(options: ClientOptions) {
    this.#name = options.place.name ?? '';
    this.#tools = new CondorTools(options);
    this.#limits = { ...timeLimits, ...options.timeLimits };
  }

  /** From now on the schedd is called by this name, but for submissions. */
  callAt(place: Pick<ScheddPlace, 'name' | 'pool'>): void {
    this.#name = place.name ?? '';
    this.#tools.callAt(place);
  }

  /**
   * Submits all jobs of a text, or none.
   * @returns their ids in the order of the text.
   */
  async submit(text: string, options: SubmitOptions, signal: AbortSignal): Promise<readonly JobId[]> {
    const { spool = false, directory, environment, onStart } = options;
    const tool: Tool = {
      command: 'condor_submit',
      args: ['-terse', ...(spool ? ['-spool'] : []), '-'],
      byFirstName: true,
      changes: true,
      timeLimit: spool ? this.#limits.transfer : this.#limits.change,
      input: text.endsWith('\n') ? text : `${text}\n`,
      ...(directory !== undefined && { directory }),
      ...(environment && { environment }),
      ...(onStart && { onStart }),
    };
    const { stdout } = await this.#tools.succeed(tool, signal);
    const jobs = submittedJobs(stdout);
    if (jobs !== undefined) return jobs;
    throw this.#unreadable(tool, stdout);
  }

  /**
   * Lets `condor_submit` read a text without submitting anything; it does not ask the schedd.
   * @returns its warnings. @throws HTCondorError `condor-submit-wrong` if it would refuse the text
   */
  async dryRun(
    text: string,
    options: Pick<SubmitOptions, 'directory' | 'environment'>,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const tool: Tool = {
      command: 'condor_submit',
      args: ['-dry-run', '/dev/null', '-'],
      changes: false,
      timeLimit: this.#limits.ask,
      input: text,
      ...options,
    };
    const { stderr } = await this.#tools.succeed(tool, signal);
    return withoutKeys(withoutOwn(stderr))
      .split('\n')
      .flatMap((line) => /^WARNING: *(?! )(.+)$/.exec(line)?.[1] ?? [])
      .map((warning) => fromOutside(warning));
  }

  /** Asks whether jobs may be submitted. @throws HTCondorError if not */
  async ping(signal: AbortSignal): Promise<void> {
    // condor_ping gives no cause for a schedd that it cannot find, but condor_q does.
    await this.queue('false', ['ClusterId'], signal);
    const args = ['-type', 'SCHEDD', 'WRITE'];
    const tool: Tool = { command: 'condor_ping', args, changes: false, timeLimit: this.#limits.ask };
    await this.#tools.succeed(tool, signal);
  }

  /**
   * The user whose jobs those are that we submit now, `NAME@DOMAIN`: by a command of `condor_submit`, for which a schedd authenticates also
   * where it asks nobody else who he is. Undefined where it authenticates nobody. @throws HTCondorError also where it maps us to no user
   */
  async whoAmI(signal: AbortSignal): Promise<string | undefined> {
    const args = ['-type', 'SCHEDD', 'QMGMT_WRITE_CMD'];
    const tool: Tool = { command: 'condor_ping', args, changes: false, timeLimit: this.#limits.ping };
    const { stdout } = await this.#tools.succeed(tool, signal);
    return userOfPing(stdout);
  }

  /** The schedd is asked itself, since the collector has what it said last. Its queue is another one where its spool is. */
  async jobQueue(signal: AbortSignal): Promise<QueueOfSchedd> {
    const attributes = ['JobQueueBirthdate', 'DaemonStartTime', 'Name'];
    const args = ['-schedd', '-direct', this.#name, '-json', ...projection(attributes)];
    const tool = { command: 'condor_status', args, changes: false, timeLimit: this.#limits.ping } as const;
    const [ad] = await this.#ads((one) => one, { ...tool, target: 'named-schedd' }, signal);
    const { JobQueueBirthdate: birth, DaemonStartTime: started, Name: name } = ad ?? {};
    if (typeof birth === 'number' && typeof started === 'number' && typeof name === 'string')
      return { birth, started, name };
    throw this.#unreadable(tool, 'no JobQueueBirthdate');
  }

  /** What the largest machines of the pool have, by its collector. Undefined where that knows none. @throws HTCondorError */
  async largestMachines(signal: AbortSignal): Promise<MachineSizes | undefined> {
    const attributes = { cpus: 'TotalSlotCpus', gpus: 'TotalSlotGPUs', memory: 'TotalSlotMemory' } as const;
    // A dynamic slot is a part of a partitionable one.
    const which = ['-constraint', 'SlotType =!= "Dynamic"'];
    const args = ['-json', ...projection(Object.values(attributes)), ...which];
    const tool = { command: 'condor_status', args, changes: false, timeLimit: this.#limits.ping } as const;
    const most = { cpus: 0, gpus: 0, memory: 0 };
    const take = (ad: Ad) => {
      for (const size of ['cpus', 'gpus', 'memory'] as const) {
        const value = ad[attributes[size]];
        if (typeof value === 'number' && value > most[size] && value <= mostOfMachine) most[size] = value;
      }
    };
    await this.#ads(
      (ad) => {
        take(ad);
        return undefined;
      },
      { ...tool, target: 'pool' },
      signal,
    );
    return most.cpus > 0 ? most : undefined;
  }

  /** Jobs in the queue, whosever they are. @param attributes all if empty */
  queue(constraint: string, attributes: readonly string[], signal: AbortSignal): Promise<Ad[]> {
    return this.queueAs((ad) => ad, constraint, attributes, signal);
  }

  /** The same, each read as it comes: while HTCondor still writes others. @param read undefined: it is left out */
  queueAs<T>(
    read: (ad: Ad) => T | undefined,
    constraint: string,
    attributes: readonly string[],
    signal: AbortSignal,
  ): Promise<T[]> {
    const args = ['-allusers', '-json', ...projection(attributes), '-constraint', constraint];
    const tool: Tool = { command: 'condor_q', args, changes: false, timeLimit: this.#limits.ask };
    return this.#ads(read, tool, signal);
  }

  /**
   * Jobs in the queue as lines of values: a third of the time that JSON takes, and no list of them is held.
   * @param attributes at least one
   * @param onJob gets the values as the schedd has them, unevaluated: strings in quotes, `undefined` for what a job lacks; undefined where a value
   *   has a tab or the end of a line
   */
  async queueLines(
    constraint: string,
    attributes: readonly string[],
    onJob: (values: readonly string[] | undefined) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const rows = new Rows(attributes.map(classAdName));
    const args = ['-allusers', '-constraint', constraint, '-af:rt', ...rows.fields];
    const tool: Tool = { command: 'condor_q', args, changes: false, timeLimit: this.#limits.ask };
    await this.#rows(tool, rows, onJob, signal);
  }

  /**
   * Values of jobs as HTCondor itself compares them in a constraint: in a list as JSON, an expression stands unevaluated.
   * @param limit at most so many jobs; of the history, the last to leave
   * @returns the values of each job, strings in quotes; none of a job whose values have a tab or the end of a line
   */
  async evaluated(
    where: 'queue' | 'history',
    constraint: string,
    attributes: readonly string[],
    limit: number,
    signal: AbortSignal,
  ): Promise<(readonly string[])[]> {
    const command = where === 'queue' ? 'condor_q' : 'condor_history';
    const rows = new Rows(attributes.map(classAdName));
    const everyone = where === 'queue' ? ['-allusers'] : [];
    const args = [...everyone, '-limit', `${limit}`, '-constraint', constraint, '-af:Vt', ...rows.fields];
    const jobs = new Kept<readonly string[]>();
    const tool: Tool = { command, args, changes: false, timeLimit: this.#limits.ask };
    const onJob = (values: readonly string[] | undefined) => {
      jobs.add(values?.map(ownCopy));
    };
    await this.#rows(tool, rows, onJob, signal);
    return jobs.all;
  }

  /**
   * Whole ads of jobs, as they are: expressions unevaluated. For few jobs: each is thousands of characters.
   * @param read gets each as it comes, and says what is kept of it: a user can make one of a million characters. Undefined: it is left out
   */
  async queueAds<T>(
    constraint: string,
    signal: AbortSignal,
    read: (ad: AdText) => T | undefined,
  ): Promise<T[]> {
    const args = ['-allusers', '-long', '-constraint', constraint];
    const tool: Tool = { command: 'condor_q', args, changes: false, timeLimit: this.#limits.ask };
    const ads = new AdTexts();
    const found = new Kept<T>();
    const onOutput = (text: string) => {
      for (const ad of ads.push(text)) found.add(read(ad));
    };
    await this.#tools.succeed({ ...tool, onOutput }, signal);
    // An ad ends with an empty line, also the last one: without it something is missing.
    if (!ads.complete) throw this.#unreadable(tool, 'an ad without end');
    return found.all;
  }

  /**
   * Jobs that left the queue, the last to leave first.
   * @param limit at most so many: the whole history is read otherwise
   * @param since an expression: it is read up to the first job for which that is true
   */
  history(
    constraint: string,
    attributes: readonly string[],
    limit: number,
    signal: AbortSignal,
    since?: string,
  ): Promise<Ad[]> {
    return this.historyAs((ad) => ad, constraint, attributes, limit, signal, since);
  }

  /** The same, each read as it comes. @param read undefined: it is left out */
  historyAs<T>(
    read: (ad: Ad) => T | undefined,
    constraint: string,
    attributes: readonly string[],
    limit: number,
    signal: AbortSignal,
    since?: string,
  ): Promise<T[]> {
    const end = ['-limit', `${limit}`, ...(since === undefined ? [] : ['-since', since])];
    const args = ['-json', ...projection(attributes), ...end, '-constraint', constraint];
    const tool: Tool = { command: 'condor_history', args, changes: false, timeLimit: this.#limits.ask };
    return this.#ads(read, tool, signal);
  }

  /** Does the same to all jobs of a constraint. A constraint without jobs is no error. */
  async act(
    action: JobAction,
    constraint: string,
    reason: string,
    signal: AbortSignal,
  ): Promise<ActionCounts> {
    const tool: Tool = {
      command: commands[action],
      args: ['-totals', '-reason', plainReason(reason), '-constraint', constraint],
      changes: true,
      timeLimit: this.#limits.change,
    };
    const end = await this.#tools.run(tool, signal);
    // Its exit status is 1 where there were none, and 0 where some were not touched: only the counts tell.
    const counts = actionCounts(`${end.stdout}\n${end.stderr}`);
    if (counts !== undefined) return counts;
    throw end.status === 0 ? this.#unreadable(tool, end.stdout) : this.#tools.failure(tool, end);
  }

  /** Brings the output of spooled jobs that have ended to where it was submitted from. */
  async transferData(constraint: string, signal: AbortSignal): Promise<void> {
    const args = ['-constraint', constraint];
    const timeLimit = this.#limits.transfer;
    await this.#tools.succeed({ command: 'condor_transfer_data', args, changes: true, timeLimit }, signal);
  }

  /** The end of what a running job wrote. @throws HTCondorError `condor-no-job` if it does not run */
  async tail(
    job: JobId,
    { stream, maxBytes = 65_536 }: { readonly stream: 'stdout' | 'stderr'; readonly maxBytes?: number },
    signal: AbortSignal,
  ): Promise<string> {
    const which = stream === 'stderr' ? ['-no-stdout', '-stderr'] : [];
    const args = [...which, '-maxbytes', `${maxBytes}`, jobIdText(job)];
    const timeLimit = this.#limits.ask;
    const outputLimit = maxBytes + 1024;
    const tool: Tool = { command: 'condor_tail', args, changes: false, timeLimit, outputLimit };
    return (await this.#tools.succeed(tool, signal)).stdout;
  }

  /**
   * The end of a file in the directory of a running job, byte for byte. HTCondor gives out only files that `transfer_output_files`
   * of the job names.
   * @throws HTCondorError `condor-not-listed` for another file, `condor-no-job` if the job does not run
   */
  async tailFile(
    job: JobId,
    { file, maxBytes }: { readonly file: string; readonly maxBytes: number },
    signal: AbortSignal,
  ): Promise<Buffer> {
    const tool: Tool = {
      command: 'condor_tail',
      args: ['-no-stdout', '-maxbytes', `${maxBytes}`, jobIdText(job), file],
      changes: false,
      timeLimit: this.#limits.ask,
      outputLimit: maxBytes,
      encoding: 'latin1',
    };
    return Buffer.from((await this.#tools.succeed(tool, signal)).stdout, 'latin1');
  }

  /**
   * Sets attributes of all jobs of a constraint in one transaction.
   * @param values expressions by name
   * @throws HTCondorError `condor-no-job` if there are none.
   */
  async qedit(
    constraint: string,
    values: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    // In one argument: -1 in one of its own would be an option.
    const edits = Object.entries(values).map(([name, value]) => `${classAdName(name)}=${value}`);
    const args = ['-constraint', constraint, ...edits];
    await this.#tools.succeed(
      { command: 'condor_qedit', args, changes: true, timeLimit: this.#limits.change },
      signal,
    );
  }

  /** Runs a command that writes a row of values for each job. */
  async #rows(
    tool: Tool,
    rows: Rows,
    onJob: (values: readonly string[] | undefined) => void,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#tools.succeed(
      {
        ...tool,
        onOutput: (text) => {
          rows.push(text).forEach(onJob);
        },
      },
      signal,
    );
    if (!rows.complete) throw this.#unreadable(tool, 'a row without end');
  }

  async #ads<T>(read: (ad: Ad) => T | undefined, tool: Tool, signal: AbortSignal): Promise<T[]> {
    const objects = new JsonObjects();
    const ads = new Kept<T>();
    const onOutput = (text: string) => {
      for (const ad of objects.push(text)) ads.add(read(ad));
    };
    await this.#tools.succeed({ ...tool, onOutput }, signal);
    // A list that is cut off would make the jobs at its end look gone.
    if (!objects.complete) throw this.#unreadable(tool, 'a list without end');
    return ads.all;
  }

  #unreadable(tool: Tool, output: string): HTCondorError {
    const { command, place } = this.#tools.called(tool);
    const shown = fromOutside(output).replaceAll(/\s+/g, ' ').trim().slice(0, 200);
    const message = `${command} for ${place} ended well but wrote "${shown}"`;
    return new HTCondorError({ code: 'condor-answer', message, maybeDone: tool.changes });
  }
}

function projection(attributes: readonly string[]): string[] {
  return attributes.length === 0 ? [] : ['-attributes', attributes.map(classAdName).join(',')];
}

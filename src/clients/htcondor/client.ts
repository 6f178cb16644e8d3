import type { ProgramEnd } from '../program.ts';
import { classAdName, type JobId, jobIdText } from './classad.ts';
import { HTCondorError } from './errors.ts';
import { type Ad, JsonObjects } from './json-objects.ts';
import { CondorTools, type Tool, type ToolsOptions } from './tools.ts';

/** ms. Transfers take as long as their files are big. */
const timeLimits = { ask: 60_000, change: 120_000, transfer: 600_000 } as const;

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

export type JobAction = 'remove' | 'hold' | 'release';

/** The results of an action, as numbers of jobs. */
export interface ActionCounts {
  readonly succeeded: number;
  readonly failed: number;
  readonly notFound: number;
  /** Jobs in a status that the action does not fit: only a held job can be released. */
  readonly badStatus: number;
  readonly alreadyDone: number;
  readonly denied: number;
}

const commands = { remove: 'condor_rm', hold: 'condor_hold', release: 'condor_release' } as const;

/**
 * One schedd, through HTCondor's own commands. Constraints are expressions that the caller has made of safe parts (see
 * `classad.ts`). Every call throws HTCondorError; its `maybeDone` says whether something may have happened all the same.
 */
export class HTCondorClient {
  readonly #tools: CondorTools;
  readonly #limits: Record<keyof typeof timeLimits, number>;

  constructor(options: ClientOptions) {
    this.#tools = new CondorTools(options);
    this.#limits = { ...timeLimits, ...options.timeLimits };
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
      changes: true,
      timeLimit: spool ? this.#limits.transfer : this.#limits.change,
      input: text.endsWith('\n') ? text : `${text}\n`,
      ...(directory !== undefined && { directory }),
      ...(environment && { environment }),
      ...(onStart && { onStart }),
    };
    const { stdout } = await this.#succeed(tool, signal);
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
    const { stderr } = await this.#succeed(tool, signal);
    return stderr.split('\n').flatMap((line) => /^WARNING: *(.+)$/.exec(line)?.[1] ?? []);
  }

  /** Asks whether jobs may be submitted. @throws HTCondorError if not */
  async ping(signal: AbortSignal): Promise<void> {
    // condor_ping gives no cause for a schedd that it cannot find, but condor_q does.
    await this.queue('false', ['ClusterId'], signal);
    const args = ['-type', 'SCHEDD', 'WRITE'];
    const tool: Tool = { command: 'condor_ping', args, changes: false, timeLimit: this.#limits.ask };
    await this.#succeed(tool, signal);
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
    const end = ['-limit', `${limit}`, ...(since === undefined ? [] : ['-since', since])];
    const args = ['-json', ...projection(attributes), ...end, '-constraint', constraint];
    return this.#ads(
      (ad) => ad,
      { command: 'condor_history', args, changes: false, timeLimit: this.#limits.ask },
      signal,
    );
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
    await this.#succeed({ command: 'condor_transfer_data', args, changes: true, timeLimit }, signal);
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
    return (await this.#succeed(tool, signal)).stdout;
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
    await this.#succeed(
      { command: 'condor_qedit', args, changes: true, timeLimit: this.#limits.change },
      signal,
    );
  }

  async #succeed(tool: Tool, signal: AbortSignal): Promise<ProgramEnd> {
    const end = await this.#tools.run(tool, signal);
    if (end.status !== 0) throw this.#tools.failure(tool, end);
    return end;
  }

  async #ads<T>(read: (ad: Ad) => T | undefined, tool: Tool, signal: AbortSignal): Promise<T[]> {
    const objects = new JsonObjects();
    const ads: T[] = [];
    const onOutput = (text: string) => {
      for (const ad of objects.push(text)) {
        const one = read(ad);
        if (one !== undefined) ads.push(one);
      }
    };
    await this.#succeed({ ...tool, onOutput }, signal);
    // A list that is cut off would make the jobs at its end look gone.
    if (!objects.complete) throw this.#unreadable(tool, 'a list without end');
    return ads;
  }

  #unreadable(tool: Tool, output: string): HTCondorError {
    const { command, place } = this.#tools.called(tool);
    const shown = output.replaceAll(/\s+/g, ' ').trim().slice(0, 200);
    const message = `${command} for ${place} ended well but wrote "${shown}"`;
    return new HTCondorError({ code: 'condor-answer', message, maybeDone: tool.changes });
  }
}

/** A reason with a quote in it puts a job on hold without any (23.9), and one of two lines is cut. */
function plainReason(reason: string): string {
  return reason
    .replaceAll('"', "'")
    .replaceAll('\\', '/')
    .replaceAll(/[\s\0]+/g, ' ');
}

function projection(attributes: readonly string[]): string[] {
  return attributes.length === 0 ? [] : ['-attributes', attributes.map(classAdName).join(',')];
}

/** `-terse` writes one line for each cluster: "1.0 - 1.9". @returns undefined for any other text */
function submittedJobs(stdout: string): JobId[] | undefined {
  const jobs: JobId[] = [];
  for (const line of stdout.split('\n').filter((line) => line.trim() !== '')) {
    const [, cluster, first, last, lastProc] = /^(\d+)\.(\d+) - (\d+)\.(\d+)\s*$/.exec(line) ?? [];
    if (cluster === undefined || cluster !== last) return undefined;
    for (let proc = Number(first); proc <= Number(lastProc); proc++)
      jobs.push({ cluster: Number(cluster), proc });
  }
  return jobs.length === 0 ? undefined : jobs;
}

function actionCounts(text: string): ActionCounts | undefined {
  const found =
    /^(\d+) Succeeded, (\d+) Failed, (\d+) Not Found, (\d+) Bad Status, (\d+) Already Done, (\d+) Permission Denied/m.exec(
      text,
    );
  if (found === null) return undefined;
  const [succeeded = 0, failed = 0, notFound = 0, badStatus = 0, alreadyDone = 0, denied = 0] = found
    .slice(1)
    .map(Number);
  return { succeeded, failed, notFound, badStatus, alreadyDone, denied };
}

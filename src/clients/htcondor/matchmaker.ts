import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AdText, adText } from './ad-text.ts';
import { type Analysis, parseAnalysis, parseSummary, slotAnalyses } from './analysis.ts';
import { classAdName } from './classad.ts';
import { HTCondorError } from './errors.ts';
import { Rows } from './rows.ts';
import type { CondorTools, Tool } from './tools.ts';

/** Attributes that thresher sets in the ads of jobs that it shows to HTCondor's matchmaking: what they were tells nothing of a match. */
const replaced = new Set([
  'clusterid',
  'procid',
  'autoclusterid',
  'autoclusterattrs',
  'jobstatus',
  'globaljobid',
]);

/** Attributes of a slot that tell whose it is now. */
const momentary = new Set(['state', 'activity', 'remoteuser', 'remoteowner', 'name', 'mytype', 'targettype']);

/**
 * ms for a question about so many jobs. Nothing of it waits for a daemon: it computes, 5,000 usual jobs in 0.1 s, and what takes longer is an
 * expression that a user made so that it does not end.
 */
const timeLimitOf = (jobs: number) => Math.min(15_000 + 10 * jobs, 120_000);

/** Questions to HTCondor's own matchmaking about jobs and slots that need not exist. No daemon is asked. */
export class Matchmaker {
  readonly #tools: CondorTools;

  constructor(tools: CondorTools) {
    this.#tools = tools;
  }

  /** Lays out ads of jobs in a file, so that many questions can be asked about them, and removes it after `use`. */
  async withJobs<T>(jobs: readonly AdText[], use: (laid: LaidOutJobs) => Promise<T>): Promise<T> {
    // Not everybody may read what jobs say of themselves: mkdtemp makes it 0700.
    const directory = await mkdtemp(join(tmpdir(), 'thresher-match-'));
    try {
      const file = join(directory, 'jobs.ad');
      // One after the other: the text of all may be longer than a text can be.
      await writeFile(file, jobs.values().map(jobText), { mode: 0o600 });
      return await use(new LaidOutJobs(this.#tools, directory, jobs.length));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }
}

/** Jobs in a file. */
export class LaidOutJobs {
  readonly #tools: CondorTools;
  readonly #directory: string;
  readonly #count: number;

  constructor(tools: CondorTools, directory: string, count: number) {
    this.#tools = tools;
    this.#directory = directory;
    this.#count = count;
  }

  /**
   * Whether an unclaimed slot would run each of the jobs, and each job take the slot.
   * @returns by the jobs' order
   * @throws HTCondorError also where HTCondor says nothing of one of them
   */
  async matches(slot: AdText, signal: AbortSignal): Promise<boolean[]> {
    if (this.#count === 0) return [];
    const rows = parseSummary(await this.#analyze(['-analyze:summary'], [slot], signal));
    return Array.from({ length: this.#count }, (_, index) => {
      const row = rows.get(`${index + 1}.0`);
      if (row === undefined) throw unanswered(`${rows.size} of ${this.#count} jobs have a row`);
      return row.available > 0;
    });
  }

  /** Why no slot takes a job: its own condition. @param index of the job, from 0 */
  async analysis(
    index: number,
    slots: readonly AdText[],
    signal: AbortSignal,
  ): Promise<Analysis | undefined> {
    return parseAnalysis(await this.#analyze(['-better-analyze', `${index + 1}.0`], slots, signal));
  }

  /** The same for the conditions of the slots, in their order. */
  async slotAnalyses(
    index: number,
    slots: readonly AdText[],
    signal: AbortSignal,
  ): Promise<(Analysis | undefined)[]> {
    return slotAnalyses(await this.#analyze(['-better-analyze:reverse', `${index + 1}.0`], slots, signal));
  }

  /**
   * Values of attributes, evaluated by HTCondor, as it writes them: strings in quotes, `undefined` for what a job lacks.
   * @param read gets the values of a job in the order of the names, as they come, and says what is kept of them: they may be megabytes
   * @returns in the order of the jobs; undefined for one whose line cannot be read
   */
  async values<T>(
    names: readonly string[],
    read: (values: readonly string[]) => T | undefined,
    signal: AbortSignal,
  ): Promise<(T | undefined)[]> {
    const values: (T | undefined)[] = Array.from({ length: this.#count }, () => undefined);
    if (this.#count === 0) return values;
    const rows = new Rows(['ClusterId', ...names.map(classAdName)]);
    const onOutput = (text: string) => {
      for (const [number = '', ...found] of rows.push(text).filter((row) => row !== undefined))
        if (/^[1-9]\d*$/.test(number) && Number(number) <= this.#count)
          values[Number(number) - 1] = read(found);
    };
    await this.#run(['-af:Vt', ...rows.fields], onOutput, signal);
    return values;
  }

  async #analyze(args: readonly string[], slots: readonly AdText[], signal: AbortSignal): Promise<string> {
    const text = slots.map(slotText).join('');
    const name = createHash('sha256').update(text).digest('hex').slice(0, 16);
    const file = join(this.#directory, `slots-${name}.ad`);
    await writeFile(file, text, { mode: 0o600 });
    const pieces: string[] = [];
    await this.#run(['-slotads:long', file, ...args], (piece) => pieces.push(piece), signal);
    return pieces.join('');
  }

  async #run(args: readonly string[], onOutput: (text: string) => void, signal: AbortSignal): Promise<void> {
    const jobs = ['-allusers', '-jobads:long', join(this.#directory, 'jobs.ad')];
    const tool: Tool = {
      command: 'condor_q',
      args: [...jobs, ...args],
      target: 'files',
      changes: false,
      timeLimit: timeLimitOf(this.#count),
      onOutput,
    };
    await this.#tools.succeed(tool, signal);
  }
}

const unanswered = (what: string) =>
  new HTCondorError({
    code: 'condor-answer',
    message: `condor_q -analyze:summary: ${what}`,
    maybeDone: false,
  });

/** Each is an autocluster of its own: numbers of different schedds would be taken for the same otherwise. */
function jobText(ad: AdText, index: number): string {
  const rest = [...ad].filter(([name]) => !replaced.has(name));
  const own: [string, string][] = [
    ['ClusterId', `${index + 1}`],
    ['ProcId', '0'],
    ['AutoClusterId', `${index + 1}`],
    ['JobStatus', '1'],
  ];
  return adText(new Map([...own, ...rest]));
}

/** An empty slot, whatever it did when it was read. */
function slotText(ad: AdText, index: number): string {
  const rest = [...ad].filter(([name]) => !momentary.has(name));
  const own: [string, string][] = [
    ['MyType', '"Machine"'],
    ['TargetType', '"Job"'],
    ['Name', ad.get('name') ?? `"slot1@template${index + 1}"`],
    ['State', '"Unclaimed"'],
    ['Activity', '"Idle"'],
  ];
  return adText(new Map([...own, ...rest]));
}

import { resolve } from 'node:path';
import { type AdLines, attribute, readAds, textIn, writeAd } from '../../clients/htcondor/ad-lines.ts';
import { parseAds } from '../../clients/htcondor/ad-text.ts';
import { Matchmaker } from '../../clients/htcondor/matchmaker.ts';
import type { CondorTools } from '../../clients/htcondor/tools.ts';
import { writeFileAtomically } from '../../util/files.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import { slotAds, slotsOfQueue, slotsOfStartd } from './slots.ts';
import { type LearntTemplate, templateOf } from './template-ad.ts';

/** Whose slot is learnt from: a worker of a queue, or a startd by its name. */
export type Teacher =
  | { readonly queue: string; readonly shape?: string }
  /** Name of a machine, or of a slot. */
  | { readonly startd: string };

export interface Learnt {
  /** One line: from which slot, and what a worker has. */
  readonly summary: string;
  readonly warnings: readonly string[];
  /** The template ad. */
  readonly text: string;
}

/**
 * Takes the slot ad of a worker that has joined, and makes it that of an empty worker of the same kind.
 * @throws ThresherError `pool-learn`; HTCondorError
 */
export async function learn(tools: CondorTools, teacher: Teacher, signal: AbortSignal): Promise<Learnt> {
  const constraint =
    'startd' in teacher ? slotsOfStartd(teacher.startd) : slotsOfQueue(teacher.queue, teacher.shape);
  const slots = inOrder(await slotAds(tools, { constraint }, signal));
  if (slots.length === 0) throw new ThresherError('pool-learn', nobodyToLearnFrom(teacher));
  const { template, others } = chosen(slots);
  const text = writeAd(template.ad);
  const warnings = [...others, ...(await tried(tools, template, text, signal))];
  return { summary: summaryOf(template), warnings, text };
}

/** @throws ThresherError `pool-learn` */
export async function keepTemplate(file: string, text: string): Promise<void> {
  try {
    await writeFileAtomically(resolve(file), text);
  } catch (error) {
    const message = `${file} cannot be written: ${messageOf(error)}; --out names a file in a directory of yours that is there`;
    throw new ThresherError('pool-learn', message, { file }, { cause: error });
  }
}

function inOrder(slots: readonly AdLines[]): AdLines[] {
  const name = (slot: AdLines) => textIn(slot, 'Name') ?? '';
  return slots.toSorted((one, other) => (name(one) < name(other) ? -1 : 1));
}

/** The first slot that fits; all are of one kind, or there is a warning. */
function chosen(slots: readonly AdLines[]): { readonly template: LearntTemplate; readonly others: string[] } {
  // A machine of several slots has a dynamic one for each job.
  const whole = slots.filter((slot) => textIn(slot, 'SlotType') !== 'Dynamic');
  const tries = (whole.length === 0 ? slots : whole).map(templateOf);
  const templates = tries.flatMap((one) => ('unfit' in one ? [] : [one]));
  const [first] = templates;
  if (first === undefined) {
    const [unfit] = tries.flatMap((one) => ('unfit' in one ? [one.unfit] : []));
    throw new ThresherError('pool-learn', unfit ?? 'no slot fits');
  }
  const size = sizeOf(first);
  const different = templates
    .filter((one) => sizeOf(one) !== size)
    .map((one) => `${one.from} has ${sizeOf(one)}`);
  const others =
    different.length === 0
      ? []
      : [
          `not all workers are alike: ${different.slice(0, 3).join('; ')}: name one by --startd, or give each kind a shape of its own`,
        ];
  return { template: first, others };
}

function nobodyToLearnFrom(teacher: Teacher): string {
  if ('startd' in teacher)
    return `the collector knows no slot of ${teacher.startd}: \`condor_status -af Machine\` lists the names that it knows`;
  const { queue, shape } = teacher;
  const workers =
    shape === undefined ? `no worker of ${queue}` : `no worker of the shape ${shape} of ${queue}`;
  return `${workers} has joined the pool, so that there is no ad to learn from: start one with \`thresher submit ${queue}${shape === undefined ? '' : ` --shape ${shape}`}\`, wait until \`thresher pool status\` shows it, and repeat this; or name another startd of the same kind by --startd`;
}

function summaryOf(template: LearntTemplate): string {
  return `learnt from ${template.from}: ${sizeOf(template)}`;
}

/** The disk is left out of comparisons: two machines of one kind differ by what lies on theirs. */
function sizeOf({ resources }: LearntTemplate): string {
  const words = [...resources].flatMap(([name, amount]) => {
    if (name === 'Cpus') return [`${amount} ${amount === 1 ? 'core' : 'cores'}`];
    if (name === 'Memory') return [`${amount} MiB of memory`];
    return name === 'Disk' || amount === 0 ? [] : [`${amount} ${name}`];
  });
  return words.join(', ');
}

/** A job that every worker takes, unless START demands something of jobs. */
const trivialJob = [
  'MyType = "Job"',
  'ClusterId = 1',
  'ProcId = 0',
  'AutoClusterId = 1',
  'Owner = "thresher"',
  'User = "thresher@thresher"',
  'JobStatus = 1',
  'JobUniverse = 5',
  'Cmd = "/bin/true"',
  'QDate = 1',
  'EnteredCurrentStatus = 1',
  'RequestCpus = 1',
  'RequestMemory = 1',
  'RequestDisk = 1',
  'Requirements = true',
  '',
].join('\n');

/**
 * Reads the template back, and lets HTCondor match a trivial job with it.
 * @returns warnings. @throws ThresherError `pool-learn`; HTCondorError
 */
async function tried(
  tools: CondorTools,
  { from, ad, missing }: LearntTemplate,
  text: string,
  signal: AbortSignal,
): Promise<string[]> {
  const [again] = readAds(text);
  if (again?.size !== ad.size)
    throw new ThresherError('pool-learn', `the ad of ${from} cannot be read back as it was written`);
  const [slot = new Map<string, string>()] = parseAds(text);
  const [takesIt] = await new Matchmaker(tools).withJobs(parseAds(trivialJob), (jobs) =>
    jobs.matches(slot, signal),
  );
  if (takesIt === undefined)
    throw new ThresherError(
      'pool-learn',
      `condor_q cannot read the template of ${from}: is HTCondor here older than there?`,
    );
  if (takesIt) return [];
  const start = attribute(ad, 'Start') ?? 'undefined';
  if (missing.length > 0) {
    const message = `START of ${from} hangs on what only a running startd has (${missing.join(', ')}), so that no job would ever match the template: write START = ${start} without it`;
    throw new ThresherError('pool-learn', message);
  }
  return [
    `START of ${from} refuses a job without any wishes (START = ${start}): jobs that it takes are counted, and no others`,
  ];
}

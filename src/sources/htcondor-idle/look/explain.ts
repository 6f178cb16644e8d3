import { type AdText, numberIn } from '../../../clients/htcondor/ad-text.ts';
import type { Analysis } from '../../../clients/htcondor/analysis.ts';
import type { LaidOutJobs } from '../../../clients/htcondor/matchmaker.ts';
import type { Explanation } from './result.ts';

/** A shape as a job sees it. */
export interface SeenShape {
  readonly key: string;
  readonly ad: AdText;
}

/** Shapes whose own conditions are looked at. */
const mostShapes = 5;

/** Parts of conditions that are told. */
const mostConditions = 5;

/** Characters of a condition that are told. */
const longest = 200;

/**
 * Why no shape takes a job, in HTCondor's own words.
 * @returns undefined where its analysis cannot be read
 * @throws HTCondorError
 */
export async function explainJob(
  job: LaidOutJobs,
  shapes: readonly SeenShape[],
  signal: AbortSignal,
): Promise<Explanation | undefined> {
  if (shapes.length === 0) {
    const sentence = 'no queue has a shape that could take it';
    return { sentence, conditions: [], of: 'unknown' };
  }
  const ads = shapes.map(({ ad }) => ad);
  const analysis = await job.analysis(0, ads, signal);
  if (analysis === undefined) return undefined;
  const { rejected = 0, refusing = 0 } = analysis;
  const ofJob = rejected > 0 ? wordsOfJob(analysis, shapes) : undefined;
  // Shapes that the job would take, and that do not take the job; where it takes none, the job's own condition is the reason.
  const ofMachines = refusing > 0 ? await wordsOfMachines(job, shapes, signal) : undefined;
  const conditions = [...new Set([...(ofJob?.conditions ?? []), ...(ofMachines?.conditions ?? [])])];
  const sentences = [ofJob?.sentence, ofMachines?.sentence].filter((one) => one !== undefined);
  if (sentences.length === 0) {
    return { sentence: 'HTCondor names no condition that fails', conditions: [], of: 'unknown' };
  }
  const sides = { job: ofJob !== undefined, machine: ofMachines !== undefined };
  const of = sides.job && sides.machine ? 'both' : sides.job ? 'job' : 'machine';
  return { sentence: sentences.join('; '), conditions, of };
}

interface Words {
  readonly sentence: string;
  readonly conditions: readonly string[];
}

function wordsOfJob({ failing, values, rejected = 0 }: Analysis, shapes: readonly SeenShape[]): Words {
  const shown = failing.slice(0, mostConditions);
  const conditions = shown.map((text) => plain(text, values));
  const all =
    rejected === shapes.length
      ? `none of the ${shapes.length} shapes`
      : `${rejected} of the ${shapes.length} shapes`;
  const count = shapes.length === 1 ? 'the only shape' : all;
  if (shown.length === 0) {
    const verb = shapes.length === 1 ? 'does not meet' : rejected === shapes.length ? 'meets' : 'do not meet';
    return { sentence: `${count} ${verb} the requirements of the job`, conditions };
  }
  const facts = shown.map((text, index) => {
    const has = amountsOf(text, shapes);
    return `\`${conditions[index] ?? ''}\`${has === undefined ? '' : ` (the shapes have ${has})`}`;
  });
  const whole = shapes.length === 1 ? 'the only shape does not meet' : 'no shape meets';
  return { sentence: `${whole} a condition of the job: ${facts.join(', ')}`, conditions };
}

async function wordsOfMachines(
  job: LaidOutJobs,
  shapes: readonly SeenShape[],
  signal: AbortSignal,
): Promise<Words> {
  const looked = shapes.slice(0, mostShapes);
  const analyses = await job.slotAnalyses(
    0,
    looked.map(({ ad }) => ad),
    signal,
  );
  const conditions = new Set<string>();
  const refusing: string[] = [];
  for (const [index, analysis] of analyses.entries()) {
    if (analysis === undefined || analysis.failing.length === 0) continue;
    refusing.push(looked[index]?.key ?? '');
    for (const text of analysis.failing) conditions.add(plain(text, analysis.values));
  }
  const shown = [...conditions].slice(0, mostConditions);
  if (shown.length === 0)
    return { sentence: 'machines refuse the job by their own requirements', conditions: [] };
  const sentence = `machines of ${refusing.join(', ')} refuse the job by a condition of their own: ${shown.map((text) => `\`${text}\``).join(', ')}`;
  return { sentence, conditions: shown };
}

/** `TARGET.GPUs >= RequestGPUs` of a job that asks for 2 is `RequestGPUs >= 2`; others stay as HTCondor writes them. */
function plain(text: string, values: ReadonlyMap<string, string>): string {
  const [, byJob] = /^TARGET\.(\w+) >= (?:MY\.)?Request\1$/i.exec(text) ?? [];
  const [, bySlot] = /^TARGET\.(Request\w+) <= MY\.\w+$|^MY\.\w+ >= TARGET\.(Request\w+)$/i.exec(text) ?? [];
  const name = byJob === undefined ? (bySlot ?? /TARGET\.(Request\w+)$/i.exec(text)?.[1]) : `Request${byJob}`;
  const isRequest =
    byJob !== undefined || /^(TARGET\.Request\w+ <= MY\.\w+|MY\.\w+ >= TARGET\.Request\w+)$/i.test(text);
  const value = isRequest && name !== undefined ? valueOf(name, values) : undefined;
  if (name !== undefined && value !== undefined) return `${name} >= ${value}`;
  return text.length > longest ? `${text.slice(0, longest)}...` : text;
}

function valueOf(name: string, values: ReadonlyMap<string, string>): string | undefined {
  const wanted = name.toLowerCase();
  for (const [one, value] of values) if (one.toLowerCase().replace(/^target\./, '') === wanted) return value;
  return undefined;
}

/** What shapes have of the resource that a condition compares: "GPUs 0 to 1". */
function amountsOf(text: string, shapes: readonly SeenShape[]): string | undefined {
  const [, name] = /^TARGET\.(\w+) >= /i.exec(text) ?? [];
  if (name === undefined) return undefined;
  const amounts = shapes.map(({ ad }) => numberIn(ad, name.toLowerCase()) ?? 0);
  const [least, most] = [Math.min(...amounts), Math.max(...amounts)];
  return least === most ? `${name} ${most}` : `${name} ${least} to ${most}`;
}

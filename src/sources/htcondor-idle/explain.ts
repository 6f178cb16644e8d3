import type { Static, TSchema } from 'typebox';
import type { Clock } from '../../util/clock.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { factsFromOutside } from '../../util/own-secrets.ts';
import { check } from '../../util/schema.ts';
import { ThresherError } from '../../worker/errors.ts';
import { noRequirements } from '../../worker/worker.ts';
import type { Explanation, Looker, PoolLook, Template } from './look/result.ts';
import { lookerOf } from './looker.ts';
import type { Need } from './model.ts';
import { IdleOptions, IdleQueueOptions, idleSource } from './options.ts';
import { shapesOf } from './shapes.ts';
import { readTemplates } from './templates.ts';
import { count as counted } from './words.ts';

export { idleSource };
export { shapeRequest, type ShapeRequest } from './shape-request.ts';

/** Kinds of jobs that are explained. */
const mostExplained = 50;
/** How long all explanations together may take, ms. */
const explainFor = 120_000;
const noCause = 'no slot ad takes it; HTCondor gave no cause';
const notExplained = `no slot ad takes it; thresher asks HTCondor for the causes of the ${mostExplained} kinds with most jobs, for ${explainFor / 1000} s at most`;

/** A queue whose demand this source is. */
export interface ExplainedQueue {
  readonly name: string;
  /** Options of its `demand`. */
  readonly options: unknown;
  readonly configDir: string;
}

export interface ExplainParts {
  readonly clock: Clock;
  readonly files: OperatorFiles;
  /** Directory of the settings. */
  readonly configDir: string;
  /** Default: reads the pool that the options name. */
  readonly looker?: Looker;
}

/** Jobs of one owner that will never start, for one cause. */
export interface UnservableJobs {
  readonly owner: string;
  readonly schedd: string;
  readonly jobs: number;
  /** Of one job, by HTCondor's names in small letters: cores, MiB, KiB. */
  readonly request: Readonly<Record<string, number>>;
  /** `RequestGpus >= 2`; empty where HTCondor names no condition alone. */
  readonly conditions: readonly string[];
  readonly sentence: string;
}

export interface DemandExplained {
  /** Jobs that wait, and over which a negotiation cycle has passed. */
  readonly idle: number;
  /** Those over which none has passed yet: they are judged later. */
  readonly fresh: number;
  /** Most jobs first. */
  readonly unservable: readonly UnservableJobs[];
  /** Sentences: parts of the pool and slot ads without which the answer is not whole. */
  readonly unknown: readonly string[];
  /** Keys of the shapes that jobs were held against. */
  readonly shapes: readonly string[];
}

/**
 * Looks at the pool once and explains which jobs fit no shape of any queue, and no slot that the pool has. It needs no daemon. Secrets that
 * the pool's answers repeat are hidden.
 * @param written `sources.htcondor-idle` of the settings. @throws ThresherError `wrong-type` for a mistake in it
 */
export async function explainDemand(
  written: unknown,
  queues: readonly ExplainedQueue[],
  { clock, files, configDir, looker }: ExplainParts,
  signal: AbortSignal,
): Promise<DemandExplained> {
  const options = checkedBy(IdleOptions, written, 'sources.htcondor-idle of the settings');
  const shapes = queues.flatMap(({ name, configDir: directory, options: own }) =>
    shapesOf({
      name,
      configDir: directory,
      options: checkedBy(IdleQueueOptions, own, `demand of ${name}`),
      // The needs of a worker are of no matter here.
      requirements: noRequirements,
    }),
  );
  const { templates, troubles } = await readTemplates(shapes, files);
  const reader = looker ?? lookerOf(options, { clock, factoryId: '', configDir });
  const look = await reader.look(templates, signal);
  const judged = look.needs.map((need) => ({ need, fits: fitsOf(need, templates, look) }));
  const refused = judged
    .flatMap(({ need, fits }) => (fits === false ? [need] : []))
    .toSorted((one, other) => other.count - one.count);
  const unservable = await explainAll(refused, templates, { reader, clock }, signal);
  const unclear = judged.filter(({ fits }) => fits === undefined);
  const explained: DemandExplained = {
    idle: look.needs.reduce((sum, { count }) => sum + count, 0),
    fresh: look.fresh,
    unservable: unservable.toSorted((one, other) => other.jobs - one.jobs),
    unknown: [
      ...[...troubles.values()].flat().map(({ message }) => message),
      ...unknownParts(look),
      ...(unclear.length === 0 ? [] : [`HTCondor did not say what takes ${jobsIn(unclear)}`]),
    ],
    shapes: templates.map(({ shape }) => shape.key),
  };
  return factsFromOutside(explained) as DemandExplained;
}

/** @throws ThresherError `wrong-type` */
function checkedBy<Schema extends TSchema>(schema: Schema, written: unknown, where: string): Static<Schema> {
  const checked = check(schema, written);
  if (checked.ok) return checked.value;
  const said = checked.problems.map(({ message }) => message).join('; ');
  throw new ThresherError('wrong-type', `${where}: ${said}`);
}

/** Whether anything could take such a job: a worker of a shape, or a slot that the pool has already. Undefined: unknown. */
function fitsOf(need: Need, templates: readonly Template[], { matching }: PoolLook): boolean | undefined {
  const answers = [...templates.map(({ shape }) => matching.shape(need, shape)), matching.pool(need)];
  if (answers.includes(true)) return true;
  return answers.includes(undefined) ? undefined : false;
}

/** Explains the first needs, and lists the others without a cause: each explanation is a program that computes. */
async function explainAll(
  needs: readonly Need[],
  templates: readonly Template[],
  { reader, clock }: { readonly reader: Looker; readonly clock: Clock },
  signal: AbortSignal,
): Promise<UnservableJobs[]> {
  const over = new AbortController();
  const waited = new AbortController();
  const limited = AbortSignal.any([signal, over.signal]);
  const limit = clock.sleep(explainFor, waited.signal).then(() => {
    over.abort();
  });
  const found: UnservableJobs[] = [];
  try {
    for (const [index, need] of needs.entries()) {
      const isAsked = index < mostExplained && !over.signal.aborted;
      const cause = isAsked ? await causeOf(need, templates, reader, limited) : undefined;
      signal.throwIfAborted();
      const isCut = !isAsked || (cause === undefined && over.signal.aborted);
      found.push(...jobsOf(need, cause ?? { sentence: isCut ? notExplained : noCause, conditions: [] }));
    }
    return found;
  } finally {
    waited.abort();
    await limit;
  }
}

type Cause = Pick<Explanation, 'sentence' | 'conditions'>;

async function causeOf(
  need: Need,
  templates: readonly Template[],
  reader: Looker,
  signal: AbortSignal,
): Promise<Cause | undefined> {
  try {
    return await reader.explain(need, templates, signal);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

function jobsOf(need: Need, { sentence, conditions }: Cause): UnservableJobs[] {
  return [...need.owners].map(([owner, jobs]) => ({
    owner,
    schedd: need.schedd,
    jobs,
    request: Object.fromEntries(need.request),
    conditions,
    sentence,
  }));
}

/** One sentence for each cause: a dead collector has several parts silent. */
function unknownParts({ unknown }: PoolLook): string[] {
  const byCause = Map.groupBy(unknown, ({ reason }) => reason.message);
  return [...byCause].map(([cause, parts]) => {
    const which = [...new Set(parts.map(({ part, name }) => named(part, name)))];
    return `${which.join(', ')} gave no answer: ${cause}`;
  });
}

const named = (part: string, name: string) => (name === '' ? `the ${part}` : `the ${part} ${name}`);

const jobsIn = (judged: readonly { readonly need: Need }[]) =>
  counted(
    judged.reduce((sum, { need }) => sum + need.count, 0),
    'job',
  );

/**
 * HTCJob as the API server keeps it: `htcjobs.htc.cern.ch`, version v1alpha1. The schema of the CRD (`crd.ts`) admits nothing
 * else, but for objects that were stored under an older schema: see `flawOf`.
 */
import { withoutOwn } from '../../util/own-secrets.ts';
import { type KubernetesObject, type ObjectMeta, presentIn } from '../kubernetes/objects.ts';
import type { Resource } from '../kubernetes/paths.ts';

export const htcJobs: Resource = { group: 'htc.cern.ch', version: 'v1alpha1', resource: 'htcjobs' };
/** Name of the source, and `kind` of the origins of its workers. */
export const htcJobSource = 'htcjob';
export const apiVersion = `${htcJobs.group}/${htcJobs.version}`;
export const htcJobKind = 'HTCJob';

/** The finalizer of the resource, by the name that htc-operator gave it. */
export const finalizer = 'finalizer.htc.cern.ch';

/** Owner of the fields that thresher writes. */
export const fieldManager = 'thresher';

/** How the image of a job is run on its machine. */
export const runtimes = ['apptainer', 'singularity', 'container', 'none'] as const;
export type Runtime = (typeof runtimes)[number];

/** The most jobs that one resource may ask for. */
export const mostJobs = 10_000;
/** Texts of a command: its field has no schema, and 1.5 MB have room for half a million. */
const mostArguments = 100_000;
/** Longest id of a job in a status, characters. */
export const longestJobId = 1024;

export interface HtcJobScript {
  readonly image: string;
  /** A list is a program with its arguments; a text is split at blanks, and no shell reads it. */
  readonly command: string | readonly string[];
  readonly source: string;
  /** Where the README of htc-operator has it; `spec.queue` counts first. */
  readonly queue?: number;
}

export interface EnvVariable {
  readonly name: string;
  readonly value: string;
}

/** A Secret of the resource's namespace: each key is a file `secrets/NAME/KEY` of the job's payload, mode 0600. */
export interface SecretReference {
  readonly name: string;
  /** Those alone; default: all. */
  readonly keys?: readonly string[];
  /** A missing Secret or key is no mistake. */
  readonly optional?: boolean;
}

export interface JobRequests {
  readonly cpus?: number;
  /** Bytes with a unit of Kubernetes: `512Mi`, `2G`. */
  readonly memory?: string | number;
  readonly disk?: string | number;
  readonly gpus?: number;
}

/** Files that the operator keeps of each job. */
export interface JobOutput {
  /** Relative path below the directory of the namespace. */
  readonly directory?: string;
  /** Files and directories in the directory of the job. Default: all that its script left there. */
  readonly files?: readonly string[];
}

export interface HtcJobSpec {
  readonly name: string;
  readonly script: HtcJobScript;
  /** Number of jobs. Default 1. */
  readonly queue?: number;
  /** Lines of a submit description. */
  readonly htcopts?: string;
  readonly runtime?: Runtime;
  readonly env?: readonly EnvVariable[];
  readonly secrets?: readonly SecretReference[];
  readonly requests?: JobRequests;
  readonly output?: JobOutput;
  /** The queue of thresher that runs the jobs. Default: the option `queue` of the source. */
  readonly queueName?: string;
  /** No job is submitted while true; those that were submitted are removed, and run again after. */
  readonly suspend?: boolean;
  readonly ttlSecondsAfterFinished?: number;
  readonly activeDeadlineSeconds?: number;
  /** How many failed jobs are run again, over all of the resource. Default 0. */
  readonly backoffLimit?: number;
}

export interface HtcJobCondition {
  readonly type: ConditionType;
  readonly status: 'True' | 'False';
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

/** `Complete`: all jobs succeeded. `Failed`: it has ended, and not all did. `Waiting`: something holds jobs back. `Deleting`: something has to go first. */
export type ConditionType =
  'Complete' | 'Failed' | 'Suspended' | 'Waiting' | 'Held' | 'OutputKept' | 'Deleting';

export interface HtcJobStatus {
  readonly active?: number;
  readonly succeeded?: number;
  readonly failed?: number;
  readonly held?: number;
  /** "CLUSTER.PROC", in the order of the job numbers. The same in both: htc-operator's resource and its documents have either name. */
  readonly jobid?: readonly string[];
  readonly jobIds?: readonly string[];
  readonly clusterId?: string;
  readonly uniqId?: string;
  /** Why it stands as it stands, in a word: of the printed column. */
  readonly reason?: string;
  readonly conditions?: readonly HtcJobCondition[];
  /** The factory whose jobs they are: any other leaves the resource alone. */
  readonly factory?: string;
  /** Its jobs were submitted by htc-operator, and are followed to their end. None of them is run again. */
  readonly takenOver?: boolean;
  /** How often it was suspended: jobs of an earlier round do not count. */
  readonly round?: number;
  readonly retried?: number;
  /** Numbers of the jobs that ended: "0-4,7". */
  readonly completedIndexes?: string;
  readonly failedIndexes?: string;
  /** Return codes that are not 0, by job number: of HTCondor, and as the job itself reported. */
  readonly returnCodes?: readonly ReturnCode[];
  /** Where outputs are kept, below the directory of the operator: each in a directory that has the number of its job. */
  readonly outputDirectory?: string;
  /** Numbers of the jobs whose output is kept: "0-4,7". */
  readonly outputIndexes?: string;
  /** Numbers of the jobs that left none. */
  readonly outputMissing?: string;
  readonly observedGeneration?: number;
  readonly startTime?: string;
  readonly completionTime?: string;
}

export interface ReturnCode {
  readonly index: number;
  /** The backend's word, which decides. */
  readonly exitCode?: number;
  /** From the job's CloudEvent. */
  readonly reported?: number;
}

/** Metadata beyond the parts that the client reads. */
export interface HtcJobMeta extends ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly finalizers?: readonly string[] | null;
}

export interface HtcJob extends KubernetesObject {
  readonly metadata: HtcJobMeta;
  readonly spec: HtcJobSpec;
  readonly status?: HtcJobStatus;
}

/** Whether an object says which HTCJob it is: a list with one whose metadata are null must not fail for all others. */
export function isNamed(object: KubernetesObject): object is HtcJob {
  const { namespace, name, uid } = object.metadata ?? {};
  return Boolean(namespace && name && uid);
}

/** The form of `spec.output.directory`: a relative path, none of whose parts leads up or is hidden. */
export const outputDirectory = {
  minLength: 1,
  maxLength: 200,
  pattern: String.raw`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,99})*$`,
} as const;
const rightOutputDirectory = `a relative path of at most ${outputDirectory.maxLength} letters, digits, ".", "_" and "-", no part of which begins with "." or "-"`;

/** The most failed jobs that are run again. */
export const mostRetries = 999;

interface Field {
  /** The right form, for messages. */
  readonly right: string;
  /** The value as it counts: the same where it is right, undefined where it counts as absent. */
  readonly use: (value: unknown) => unknown;
}

/** Fields that say when and where jobs run, and where their outputs go. Numbers beyond what the schema takes do no harm. */
const deciding = {
  queueName: {
    right: 'the name of a queue',
    use: (value) => (typeof value === 'string' && value !== '' ? value : undefined),
  },
  suspend: {
    right: 'true or false',
    use: (value) => (typeof value === 'boolean' ? value : undefined),
  },
  ttlSecondsAfterFinished: {
    right: 'a whole number of seconds, 0 or more',
    use: (value) => (isWhole(value) ? value : undefined),
  },
  activeDeadlineSeconds: {
    right: 'a whole number of seconds, 1 or more',
    use: (value) => (isWhole(value) && value > 0 ? value : undefined),
  },
  backoffLimit: {
    right: `a whole number from 0 to ${mostRetries}`,
    use: (value) => (isWhole(value) ? Math.min(value, mostRetries) : undefined),
  },
  output: {
    right: `an object, with a directory that is ${rightOutputDirectory}`,
    use: (value) => (isOutput(value) ? value : undefined),
  },
} as const satisfies Record<string, Field>;

type Deciding = Pick<HtcJobSpec, keyof typeof deciding>;

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isOutput(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { directory } = value as { readonly directory?: unknown };
  if (directory === undefined) return true;
  if (typeof directory !== 'string' || directory.length > outputDirectory.maxLength) return false;
  return new RegExp(outputDirectory.pattern).test(directory);
}

/** These fields as they count. An older schema may have let anything through. */
export function decidingOf(spec: HtcJobSpec): Deciding {
  const used = Object.entries(deciding).map(([name, { use }]) => [name, use(spec[name as keyof Deciding])]);
  return Object.fromEntries(used.filter(([, value]) => value !== undefined)) as Deciding;
}

/** A spec with these fields as they count: the same where nothing is wrong with them. */
export function countingSpec(spec: HtcJobSpec): HtcJobSpec {
  if (misfitOf(spec) === undefined) return spec;
  const others = Object.entries(spec).filter(([name]) => !(name in deciding));
  return { ...(Object.fromEntries(others) as unknown as HtcJobSpec), ...decidingOf(spec) };
}

/** Lists of objects in a status. */
const lists: ReadonlySet<string> = new Set(['conditions', 'returnCodes'] satisfies (keyof HtcJobStatus)[]);

/** A status as it counts: another writer, or an older schema, may have left nulls, which are as absent, in a list of objects, too. */
export function countingStatus({ status }: { readonly status?: unknown }): HtcJobStatus | undefined {
  if (typeof status !== 'object' || status === null) return undefined;
  const counting = Object.entries(status as Readonly<Record<string, unknown>>)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => [name, lists.has(name) ? presentIn(value as unknown[]) : value] as const);
  return Object.fromEntries(counting);
}

/**
 * A status as it is written: whoever may read the HTCJob reads its reasons and messages, and these may have words of its spec, of a server, or of
 * what ran its jobs. Each of those may have our login in it, which was sent to an API server or to a proxy before it.
 */
export function writtenStatus<Status extends HtcJobStatus | undefined>(status: Status): Status {
  if (status === undefined) return status;
  const { conditions, reason } = status;
  return {
    ...status,
    ...(reason !== undefined && { reason: withoutOwnText(reason) }),
    ...(conditions && {
      conditions: conditions.map((condition) => ({
        ...condition,
        reason: withoutOwnText(condition.reason),
        message: withoutOwnText(condition.message),
      })),
    }),
  };
}

/** Another writer may have left anything in the place of a text. */
function withoutOwnText(text: string): string {
  return typeof text === 'string' ? withoutOwn(text) : text;
}

/** A sentence on the first of these fields that does not count as it is; undefined where all do. */
export function misfitOf(spec: HtcJobSpec): string | undefined {
  for (const [name, { right, use }] of Object.entries(deciding)) {
    const value: unknown = spec[name as keyof Deciding];
    if (value !== undefined && value !== null && use(value) !== value) return `spec.${name} must be ${right}`;
  }
  return undefined;
}

/** Why an object is no HTCJob that could be run; undefined where it is one. An older schema may have let it through. */
export function flawOf({ spec }: { readonly spec?: unknown }): string | undefined {
  const { script, queue } = (spec ?? {}) as { readonly script?: unknown; readonly queue?: unknown };
  const { source, image, queue: former } = (script ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof source !== 'string') return 'spec.script.source is no text; write the script there';
  if (typeof image !== 'string') return 'spec.script.image is no text; write the name of the image there';
  const counts = Object.entries({ 'spec.queue': queue, 'spec.script.queue': former });
  const wrong = counts.find(([, count]) => !isJobCount(count))?.[0];
  return wrong === undefined
    ? commandFlawOf({ spec })
    : `${wrong} is no whole number from 1 to ${mostJobs}; write the number of jobs there`;
}

/** Why a command is none: the schema of today lets any value through, since no schema can say "a text or a list". */
export function commandFlawOf({ spec }: { readonly spec?: unknown }): string | undefined {
  const { script } = (spec ?? {}) as { readonly script?: unknown };
  const { command } = (script ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof command === 'string') return undefined;
  if (!isListOfTexts(command))
    return 'spec.script.command is neither a text nor a list of texts; write the program there';
  return command.length <= mostArguments
    ? undefined
    : `spec.script.command has ${command.length} texts, and may have ${mostArguments}; write long lists into the script`;
}

/** A list is a program with its arguments, and a text is split at blanks. */
export function wordsOf({ command }: Pick<HtcJobScript, 'command'>): readonly string[] {
  return typeof command === 'string' ? command.split(/\s+/).filter((word) => word !== '') : command;
}

function isListOfTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

/** htc-operator wrote a 0 into resources that did not say it. */
function isJobCount(count: unknown): boolean {
  if (count === undefined) return true;
  return typeof count === 'number' && Number.isInteger(count) && count >= 0 && count <= mostJobs;
}

/** Number of jobs that a resource asks for. htc-operator wrote a 0 into resources that did not say it. */
export function jobCount({
  queue,
  script,
}: {
  readonly queue?: number;
  readonly script: Pick<HtcJobScript, 'queue'>;
}): number {
  return queue || script.queue || 1;
}

/** Whether htc-operator counted its jobs, and no thresher has taken it over. thresher writes its factory with each count. */
export function isOfHtcOperator(status: HtcJobStatus): boolean {
  const { factory, active, succeeded, failed, jobid, jobIds } = status;
  return factory === undefined && [active, succeeded, failed, jobid, jobIds].some((one) => one !== undefined);
}

/** The contents of one Secret that the resource names, as the API has them: base64. */
export type SecretData = Readonly<Record<string, string>>;

/** A mistake in a `spec` that the schema of the CRD lets through, such as a forbidden line of `htcopts`. */
export interface SpecProblem {
  /** JSON pointer below the resource: `/spec/htcopts`. */
  readonly at: string;
  /** A whole sentence, with the line and what would be right. */
  readonly message: string;
}

/** The report of a job on itself, by a CloudEvent whose token was right. */
export interface JobReport {
  readonly uid: string;
  readonly index: number;
  readonly returnCode: number;
}

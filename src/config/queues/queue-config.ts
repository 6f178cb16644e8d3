import type {
  DefinitionOf,
  PluginFailure,
  PluginKind,
  SourceDefinition,
} from '../../plugins/contracts/index.ts';
import type { Problem } from '../../util/located.ts';
import type { Limits } from '../../limits/limits.ts';
import type { JsonObject } from '../../util/json.ts';
import { computingSiteOf } from '../../worker/identity.ts';
import type { QueueOptions, SectionName, WorkerMakerOptions, WorkerOptions } from './queue-schema.ts';

/** The source that a queue names as its demand, and the file or default that chose it. */
export interface ChosenDemand {
  /** Name of the source, which need not exist. */
  readonly demand: string;
  readonly why: string;
  /** Undefined where thresher has no such source, or its options are wrong. */
  readonly source?: ChosenSource;
}

export interface ChosenSource {
  readonly definition: SourceDefinition;
  readonly choice: SourceChoice;
}

/** The module and the options of a queue's source. JSON: part of the snapshot. */
export interface SourceChoice {
  readonly module: string;
  readonly config: JsonObject;
}

/** One plugin of a queue: which, and its options as its schema left them. JSON: part of the snapshot. */
export interface PluginChoice {
  readonly name: string;
  readonly module: string;
  readonly config: JsonObject;
}

/** A credential manager with its options as its schema left them. JSON: part of a queue's snapshot. */
export interface CredentialManagerChoice {
  readonly name: string;
  readonly module: string;
  readonly config: JsonObject;
  /** Relative paths in its options count from here. */
  readonly configDir: string;
}

/** A queue that is ready to run. JSON all through: this is the snapshot that workers are followed with. */
export interface QueueConfig {
  readonly name: string;
  readonly options: QueueOptions;
  readonly limits: Limits;
  /** Options of its workers. */
  readonly worker: WorkerOptions;
  readonly workerMaker: WorkerMakerOptions;
  /** Name of the source that it names as its demand. */
  readonly demand: string;
  /** Absent where the name says it all: a built-in source without options. */
  readonly source?: SourceChoice;
  /** Directory of the queue file: relative paths in options count from it. */
  readonly configDir: string;
  readonly plugins: Readonly<Partial<Record<SectionName, PluginChoice>>>;
  /** Credential managers that it names. Snapshots of earlier versions have none. */
  readonly credmanagers?: readonly CredentialManagerChoice[];
}

/** The facts about plugins that the configuration needs, without knowing the plugins. */
export interface PluginCatalogue {
  find<Kind extends PluginKind>(kind: Kind, module: string, name: string): DefinitionOf<Kind> | undefined;
  names(kind: PluginKind): string[];
  /** The same as data. */
  choices(kind: PluginKind): readonly { readonly module: string; readonly name: string }[];
  /** All sources, those of thresher first. */
  readonly sources: readonly SourceDefinition[];
  /** Why a third-party module could not be imported, or is of no use. */
  failure(module: string): PluginFailure | undefined;
}

/** A configuration that was written down, perhaps by an earlier version that knew less of a queue. */
export function parseSnapshot(text: string): QueueConfig {
  return {
    worker: {},
    workerMaker: {},
    ...(JSON.parse(text) as Omit<QueueConfig, 'worker' | 'workerMaker'>),
  };
}

/** The family a queue counts in. Source: Harvester's queue_config_mapper, which falls back to the site. */
export function siteFamilyOf({ name, options }: QueueConfig): string {
  return options.siteFamily ?? computingSiteOf(name);
}

/** Cores of one worker. -1 stands in production files where the site is to say it. */
export function coresOf({ nCore, nCorePerNode }: WorkerOptions): number {
  return [nCore, nCorePerNode].find((cores) => cores !== undefined && cores > 0) ?? 1;
}

/** Memory, disk and wall time of one worker; 0 where the queue does not say. */
export function sizesOf({ minRamCount = 0, maxDiskCount = 0, maxWalltime = 0 }: WorkerOptions) {
  return { minRamCount, maxDiskCount, maxWalltime };
}

/**
 * The state of a queue. `ready`: it runs. `incomplete`: its text is correct, but it needs something that is missing: a
 * plugin of Harvester that thresher lacks, a file, or a value that Harvester takes from CRIC. `refused`: it has a
 * mistake.
 */
export const queueStates = ['ready', 'incomplete', 'refused'] as const;
export type QueueState = (typeof queueStates)[number];

/** A queue of the file, judged by itself. */
export interface QueueVerdict {
  readonly name: string;
  readonly state: QueueState;
  readonly problems: readonly Problem[];
  readonly template?: string;
  /**
   * The reasons for which it submits nothing even if it is ready, as far as its configuration tells; the first thing to
   * change comes first. Empty if it submits; undefined if one of its own options is wrong.
   */
  readonly standing?: readonly string[];
  /** Its demand, and the file or default that chose it; unless one of its own options is wrong. */
  readonly demand?: ChosenDemand;
  /** The effective values of its limits, unless one of its own options is wrong. */
  readonly limits?: Limits;
  /** Present for a ready queue. */
  readonly config?: QueueConfig;
  /** The same as far as it goes, also of an incomplete one; to show a worker, and never to submit one. */
  readonly draft?: QueueConfig;
}

/** Errors that say that something is not there; every other error is a mistake. */
const absences: ReadonlySet<Problem['code']> = new Set([
  ...(['plugin-not-there', 'plugin-dropped', 'file-unreadable', 'file-not-said'] as const),
  ...(['size-not-said', 'ce-list-missing'] as const),
  ...(['cache-missing', 'cache-damaged', 'panda-server-off'] as const),
]);

export function stateOf(problems: readonly Problem[]): QueueState {
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (errors.length === 0) return 'ready';
  return errors.every(({ code }) => absences.has(code)) ? 'incomplete' : 'refused';
}

import type { Reason } from '../../../worker/reason.ts';
import type { Matching, Need, Shape, Space } from '../model.ts';

/** A shape with the slot ad of an empty worker of it, as `thresher pool learn` keeps it: long form. */
export interface Template {
  readonly shape: Shape;
  readonly ad: string;
}

/** A startd that one of our workers brought into the pool. */
export interface OwnStartd {
  readonly workerId: number;
  /** Name of one of its slots, as orders to it need it. */
  readonly slot: string;
  readonly queue: string;
  /** Key of its shape. */
  readonly shape: string;
  /** ms UTC */
  readonly startedAt: number;
  /** Claims on it: 0 = no job has it. */
  readonly claims: number;
  /** It takes no further jobs: it drains, or its START is false. */
  readonly leaving: boolean;
}

/** A part of the pool that gave no answer. Nothing grows or shrinks because of it. */
export interface Unknown {
  /** A schedd takes its jobs out of the demand; an unknown negotiator or collector, all of it. */
  readonly part: 'schedd' | 'collector' | 'negotiator' | 'template' | 'slots' | 'limits';
  /** The schedd, or the key of the shape. Empty for what there is one of. */
  readonly name: string;
  readonly reason: Reason;
}

/** Why a job fits no shape, in HTCondor's own words. */
export interface Explanation {
  /** For people: a sentence. */
  readonly sentence: string;
  /** The conditions that no template meets: `RequestGpus >= 2`. Empty where HTCondor names none alone. */
  readonly conditions: readonly string[];
  /** Whose condition it is. */
  readonly of: 'job' | 'machine' | 'both' | 'unknown';
}

/** All that one reading of the pool has found. */
export interface PoolLook {
  /** When it began, ms UTC. */
  readonly at: number;
  /** Empty while the negotiator is unknown. */
  readonly needs: readonly Need[];
  /** Idle jobs that no negotiation cycle has passed over: they are not counted yet. */
  readonly fresh: number;
  /** Spaces of the pool, our joined workers among them; undefined: unknown, so that nothing may grow. */
  readonly spaces: readonly Space[] | undefined;
  /** Our workers in the pool; undefined: unknown. */
  readonly startds: readonly OwnStartd[] | undefined;
  /** When the collector started, ms UTC: a young one does not know all startds yet. */
  readonly collectorStartedAt: number | undefined;
  /** Undefined where HTCondor gave no answer. */
  readonly matching: Matching;
  /** How much of each concurrency limit is free, by lower-case name; a name without an entry has no limit that is known. */
  readonly concurrency: ReadonlyMap<string, number>;
  readonly unknown: readonly Unknown[];
}

/** Reads a pool once. */
export interface Looker {
  /** Throws for an aborted signal alone: each failure of HTCondor is an entry of `unknown`. */
  look(templates: readonly Template[], signal: AbortSignal): Promise<PoolLook>;
  /**
   * Why this need fits none of the templates; undefined: HTCondor gave no answer. An answer is kept for the need and set of templates.
   * Throws for an aborted signal alone.
   */
  explain(need: Need, templates: readonly Template[], signal: AbortSignal): Promise<Explanation | undefined>;
}

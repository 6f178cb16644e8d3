/**
 * What HTCondor counts of a machine, by lower-case name: `cpus`, `memory` in MiB, `disk` in KiB, `gpus`, and what else
 * `MachineResources` of a slot lists. A request without a name asks for none of it; on a machine without a name HTCondor does not
 * count it: whether a job that asks for it may run there is a matter of the requirements alone.
 */
export type Resources = ReadonlyMap<string, number>;

/** Waiting jobs that are alike: an autocluster of one schedd, of which one job stands for all. */
export interface Need {
  /** `SCHEDD#AUTOCLUSTER`: unique while the schedd lives. */
  readonly key: string;
  readonly schedd: string;
  /** Idle jobs over which a negotiation cycle has passed. At least 1. */
  readonly count: number;
  /** How many of them each owner has. */
  readonly owners: ReadonlyMap<string, number>;
  /** Of one job, rounded up as a startd rounds it (`request-sizes.ts`). */
  readonly request: Resources;
  /** As the job asks for it: a startd that lacks the rounded amounts gives these. At most `request`. */
  readonly exact: Resources;
  /** Names of `ConcurrencyLimits` (`name`, `name.sub`) and how much of each a job takes; lower case. */
  readonly concurrency: ReadonlyMap<string, number>;
}

/** A kind of worker that can be asked for: one whole machine. */
export interface Shape {
  /** `QUEUE/NAME`; `QUEUE` alone where the queue has one shape. */
  readonly key: string;
  readonly queue: string;
  /** What its slot has when it is empty. */
  readonly resources: Resources;
  /** Its slot takes one job at a time, however small: a static slot. */
  readonly oneJob: boolean;
  /** Of one worker, in any unit, the same for all shapes: a cheaper shape is preferred. */
  readonly cost: number;
  /** How many workers of it may live at once; Infinity = as many as the limits of its queue let through. */
  readonly most: number;
}

/** What can take jobs already: an unclaimed slot of the pool, or a worker that is on its way to it. */
export interface Space {
  /** `NAME` of the slot; `worker:ID` of a worker that has no slot yet. */
  readonly name: string;
  /** Spaces of one kind match the same jobs, so that `Matching` is asked once for all of them. */
  readonly kind: string;
  readonly free: Resources;
  /** It takes one job, however small: a static slot. */
  readonly oneJob: boolean;
  /** The shape of a worker of ours. */
  readonly shape: string | undefined;
  /** The worker of ours whose slot it is. */
  readonly workerId?: number;
}

/** Which jobs a machine takes and which take it, as HTCondor itself says. `undefined`: HTCondor gave no answer. */
export interface Matching {
  readonly shape: (need: Need, shape: Shape) => boolean | undefined;
  /** Asked with one space of each kind. */
  readonly space: (need: Need, space: Space) => boolean | undefined;
  /** Whether any slot of the pool, claimed or not, would take the job: then it waits for the pool. */
  readonly pool: (need: Need) => boolean | undefined;
}

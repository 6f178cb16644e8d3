/**
 * The demand that asked for a worker, with its own name for it. The triple is unique within a factory: the same origin
 * never gives two workers.
 */
export interface Origin {
  /** `fill` for the built-in demand; later `panda`, `htcjob`, ... */
  readonly kind: string;
  readonly uid: string;
  readonly index: number;
}

/** Needs and purpose of a worker, in Harvester's words. */
export interface Requirements {
  readonly nCore: number;
  /** MB for the whole worker; 0 = not said. */
  readonly minRamCount: number;
  /** MB for the whole worker; 0 = not said. */
  readonly maxDiskCount: number;
  /** Seconds; 0 = no limit. */
  readonly maxWalltime: number;
  readonly resourceType: string;
  readonly jobType: string;
  readonly pilotType: string;
  readonly prodSourceLabel: string;
}

/** The backend's name for the worker. `batchID` is the name that an operator would look for there. */
export interface Handle {
  readonly batchID: string;
  readonly [key: string]: string | number | boolean;
}

/** One pilot, from its recorded intent on. Everything here is fixed when the intent is written, but for `attempt` and `handle`. */
export interface Worker {
  readonly workerId: number;
  /** Deterministic name for the backend's object, see identity.ts. */
  readonly name: string;
  readonly queue: string;
  readonly computingSite: string;
  readonly origin: Origin;
  readonly requirements: Requirements;
  /** The plugin's connection the worker was placed on (which cluster, schedd, directory). */
  readonly placement: string;
  /** The queue configuration it was submitted with; it is followed and swept with the same. */
  readonly configId: number;
  /** 1 for the first call of `submit`; counted up before each retry, and only after the former attempt was fenced. */
  readonly attempt: number;
  readonly accessPoint?: string;
  readonly handle?: Handle;
}

/** Why a worker failed, or an attempt at it: a code of the catalogue (docs/errors.md) and a sentence. */
export interface WorkerError {
  readonly code: string;
  readonly message: string;
}

import type { Payload } from './payload.ts';

/**
 * The source that asked for a worker, with its own name for it. The triple is unique within a factory: the same origin
 * never gives two workers.
 */
export interface Origin {
  /** The source: `Source.kind`. */
  readonly kind: string;
  /** The source's own name for what it asks for: a queue, a request, a resource. */
  readonly uid: string;
  /** Which of the workers of `uid`: 0 or more. */
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

/**
 * The most that one job may ask for, more than any machine has: cores, GPUs, MiB of memory, KiB of disk. The schedd adds up the cores of the idle jobs
 * of a submitter in 32 bits, and the negotiator these sums in each group: a sum that is negative, or too large, leaves the jobs of all
 * others there without machines. There is room for 524,287 idle jobs of so many cores, and for 131,071 of so much memory where the weight of a
 * slot counts 4 GiB as a core.
 * Source: `WeightedIdleJobs` of a submitter, HTCondor 23.9
 */
export const mostOfJob = { cpus: 4096, gpus: 1000, memory: 2 ** 26, disk: 1e12 } as const;
/** The same disk in MB, as `maxDiskCount` has it. */
export const mostOfDisk = mostOfJob.disk / 1024;

/** Of one core, and nothing else said: for what no worker is made from. */
export const noRequirements: Requirements = {
  nCore: 1,
  minRamCount: 0,
  maxDiskCount: 0,
  maxWalltime: 0,
  resourceType: '',
  jobType: '',
  pilotType: '',
  prodSourceLabel: '',
};

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
  /** Workers of one group were asked for together: a backend may send them as one submission, such as one cluster of HTCondor. */
  readonly groupId?: string;
  /** The payload it runs, by the store's name for it; absent = none. It cannot be started without. */
  readonly payloadId?: string;
  readonly accessPoint?: string;
  readonly handle?: Handle;
}

/** A worker as a submitter starts it: with the content of its payload, which no mark, row or log ever has. */
export interface WorkerToStart extends Worker {
  readonly payload?: Payload;
}

/** The worker as marks, handles and logs may have it. */
export function withoutPayload(worker: WorkerToStart): Worker {
  const rest: { payload?: Payload } & Worker = { ...worker };
  delete rest.payload;
  return rest;
}

/** Why a worker failed, or an attempt at it: a code of the catalogue (docs/errors.md) and a sentence. */
export interface WorkerError {
  readonly code: string;
  readonly message: string;
}

import { workerName } from '../../../worker/identity.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';
import type { FilledJob } from './fill.ts';

export type FillJob = (worker: WorkerToStart) => FilledJob;

/** Ids of as many digits as an id may have; they differ in every digit. */
const standIns = [314_159_265_358_979, 502_781_837_190_416] as const;

/** The text of a Job between the places where the id of its worker stands. */
type Parts = readonly string[];

/**
 * The Jobs of one submission as JSON. Thousands of them differ by the id of their worker alone, so from the second worker of a
 * kind on a text is put together from the parts that do not change: filling a template takes ten times as long. The parts
 * come from the Job of a stand-in. They count only if they also give the Jobs of another stand-in and of a worker itself: a
 * template that names single digits of the id fails that, and each of its Jobs is filled.
 */
export class JobTexts {
  readonly #fill: FillJob;
  readonly #factoryId: string;
  /** By kind. Null: one worker of the kind was seen; undefined: the kind has no such parts. */
  readonly #parts = new Map<string, Parts | null | undefined>();

  constructor(fill: FillJob, factoryId: string) {
    this.#fill = fill;
    this.#factoryId = factoryId;
  }

  /** The result of `fill`, as JSON. */
  of(worker: WorkerToStart): string {
    if (!isCountedAlone(worker, this.#factoryId)) return this.#filled(worker);
    const kind = kindOf(worker);
    let parts = this.#parts.get(kind);
    // A single worker of its kind would not be worth it.
    if (parts === undefined && !this.#parts.has(kind)) this.#parts.set(kind, null);
    else if (parts === null) {
      parts = this.#partsFor(worker);
      this.#parts.set(kind, parts);
    }
    return parts ? parts.join(String(worker.workerId)) : this.#filled(worker);
  }

  #filled(worker: WorkerToStart): string {
    return JSON.stringify(this.#fill(worker));
  }

  #partsFor(worker: WorkerToStart): Parts | undefined {
    const [first, second] = standIns;
    const parts = this.#filled(this.#withId(worker, first)).split(String(first));
    const gives = (one: WorkerToStart) => parts.join(String(one.workerId)) === this.#filled(one);
    return gives(this.#withId(worker, second)) && gives(worker) ? parts : undefined;
  }

  #withId(worker: WorkerToStart, workerId: number): WorkerToStart {
    const name = workerName(this.#factoryId, workerId);
    return { ...worker, workerId, name, origin: { ...worker.origin, index: workerId } };
  }
}

/** Whether nothing but its id tells a worker from others of its kind. */
function isCountedAlone(worker: WorkerToStart, factoryId: string): boolean {
  const { workerId, name, origin, payload, accessPoint } = worker;
  if (payload !== undefined || accessPoint !== undefined || origin.index !== workerId) return false;
  return name === workerName(factoryId, workerId);
}

/** All that a Job has of its worker beside the id. */
function kindOf({ queue, computingSite, origin, requirements, ...rest }: WorkerToStart): string {
  const { placement, configId, attempt, groupId, payloadId } = rest;
  const { kind, uid } = origin;
  return JSON.stringify([
    ...[queue, computingSite, kind, uid, placement, configId, attempt, groupId, payloadId],
    requirements,
  ]);
}

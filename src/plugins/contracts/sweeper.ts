import type { Observation } from '../../worker/observation.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Handle, Origin, Requirements, Worker, WorkerError } from '../../worker/worker.ts';

export type GoneOutcome =
  /** It no longer runs (kill), or nothing of it is left (remove). Also for what was never there. */
  | { readonly kind: 'gone' }
  /**
   * Asked for, not there yet: call again. The `reason` says why it takes long: the backend does not end it, or the sweeper keeps it in its
   * place on purpose, since something of the worker may still be on its way and nothing else would turn it away.
   */
  | { readonly kind: 'pending'; readonly reason?: Reason }
  | { readonly kind: 'failed'; readonly error: WorkerError };

/** Something on the backend that carries our mark. */
export interface Found {
  /** How an operator finds it there: a directory, namespace/name, cluster.proc. */
  readonly place: string;
  readonly handle: Handle;
  /** What tells it from another object that has its place and handle at another time. Absent where the handle says it, or nothing does. */
  readonly stamp?: string;
  /** The worker that its mark names; without it, thresher can only list it as an orphan. */
  readonly identity?: {
    readonly workerId: number;
    readonly name: string;
    readonly queue: string;
    readonly computingSite: string;
    readonly origin: Origin;
    readonly requirements: Requirements;
    readonly attempt: number;
    readonly accessPoint?: string;
    readonly groupId?: string;
    /** The worker has a payload: a row that is made of this is not tried again without it. */
    readonly payloadId?: string;
  };
  /** Why its mark does not name a worker. */
  readonly damage?: string;
  /** It may be the one of a worker all the same: it is shown as an orphan, and never removed as one. */
  readonly isDoubtful?: true;
  /** Absent when nothing says yet whether it began: it is then settled by `find` like an unconfirmed intent. */
  readonly observation?: Observation;
}

/** Ends and removes workers, and finds everything that is ours. Idempotent: every call may come twice. */
export interface Sweeper {
  /** Ends these, many at once; each until it is gone, or why not. Never acts on something without our mark. */
  kill(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, GoneOutcome>>;
  /**
   * Removes remains of ended workers from the backend; never while a creation of them may still arrive there, however
   * short they are to be kept.
   * @param isUnwanted nobody wants their outputs: none is fetched, and none is kept for their source
   */
  remove(
    workers: readonly Worker[],
    signal: AbortSignal,
    isUnwanted?: boolean,
  ): Promise<ReadonlyMap<number, GoneOutcome>>;
  /**
   * Everything of the connection with our mark, whatever its state. @throws when it cannot say *everything*.
   * @param isAlive of which workers the row is alive: of these nothing counts but that they are there.
   */
  list(signal: AbortSignal, isAlive?: (workerId: number) => boolean): Promise<readonly Found[]>;
  /** Removes an orphan that `list` showed, whether or not it has an identity, and nothing that has its place by now. */
  removeOrphan(found: Found, signal: AbortSignal): Promise<GoneOutcome>;
}

import { toReason } from '../../../worker/errors.ts';
import pMap from 'p-map';
import { isKubernetesError } from '../../../clients/kubernetes/errors.ts';
import type { Observation } from '../../../worker/observation.ts';
import { lastWarnings, tell } from '../events.ts';
import type { Following } from './following.ts';
import { lookUp } from './look-up.ts';
import type { MonitorParts } from './monitor-parts.ts';

const pilotEnded = 'its pilot ended, and the other containers of its Pod went on';
/** Workers that are looked at in one go, and deleted side by side. */
const atOnce = { looked: 200, deleted: 8 };

interface Outcomes {
  /** With the end of the log of a pilot that failed. */
  withLog(observation: Observation, lines: number): Promise<Observation>;
  show(observation: Observation): void;
  /** It is not given up after all, or could not be. */
  release(workerId: number): void;
}

/**
 * Gives up workers that have waited too long, as many as may be due at once (a full cluster, a missing Secret) in turn. Each is
 * judged once more by what is there now, since a watch may lag; its end is told when the server has taken the deletion.
 */
export class GivingUp {
  readonly #parts: MonitorParts;
  readonly #following: Following;
  readonly #outcomes: Outcomes;
  readonly #signal: AbortSignal;
  readonly #due = new Set<number>();
  #working = false;

  constructor(parts: MonitorParts, following: Following, outcomes: Outcomes, signal: AbortSignal) {
    this.#parts = parts;
    this.#following = following;
    this.#outcomes = outcomes;
    this.#signal = signal;
  }

  add(workerId: number): void {
    this.#due.add(workerId);
    if (this.#working) return;
    this.#working = true;
    this.#work()
      .catch((error: unknown) => {
        this.#parts.context.log.error('workers could not be given up', { ...toReason(error) });
      })
      .finally(() => {
        this.#working = false;
      });
  }

  async #work(): Promise<void> {
    while (this.#due.size > 0 && !this.#signal.aborted) {
      const some = this.#due.values().take(atOnce.looked).toArray();
      for (const workerId of some) this.#due.delete(workerId);
      try {
        await this.#giveUp(some);
      } catch (error) {
        if (!isAborted(this.#signal))
          this.#parts.context.log.warn('workers could not be given up', {
            workers: some.length,
            ...toReason(error),
          });
        for (const workerId of some) this.#outcomes.release(workerId);
      }
    }
  }

  async #giveUp(workerIds: readonly number[]): Promise<void> {
    const { namespace, context, options } = this.#parts;
    const fresh = await lookUp(namespace, workerIds, this.#signal);
    // Why a volume is not mounted, or no Pod is made, stands in events alone.
    const subjects = workerIds.flatMap((workerId) => subjectOf(fresh.objectsOf(workerId)) ?? []);
    const warnings = await lastWarnings(namespace, subjects, this.#signal);
    // The warning tells one failure, for all.
    const failures: unknown[] = [];
    let given = 0;
    const giveUpOne = async (workerId: number) => {
      fresh.countFrom(workerId, this.#following);
      try {
        const end = await this.#giveUpOne(workerId, fresh, warnings);
        if (end !== undefined) {
          if (end.exitCode === undefined) given++;
          return;
        }
      } catch (error) {
        // The watch tells how it went away meanwhile.
        if (!isKubernetesError(error, 'kubernetes-not-found', 'kubernetes-conflict')) failures.push(error);
      }
      this.#outcomes.release(workerId);
    };
    // Pilots that have ended come last: their logs are read first, and the others are judged by what was there now.
    const hasEnded = (workerId: number) => {
      const state = fresh.stateOf(workerId, namespace.now(), options);
      return Number(state?.verdict?.observation.exitCode !== undefined);
    };
    const inOrder = workerIds.toSorted((one, other) => hasEnded(one) - hasEnded(other));
    await pMap(inOrder, giveUpOne, { concurrency: atOnce.deleted });
    if (given > 0) context.log.info('workers given up', { workers: given });
    if (failures.length > 0 && !this.#signal.aborted) {
      context.log.warn('workers could not be given up', {
        workers: failures.length,
        ...toReason(failures[0]),
      });
    }
  }

  /** @returns its end; undefined: it goes on after all */
  async #giveUpOne(
    workerId: number,
    fresh: Following,
    warnings: ReadonlyMap<string, string>,
  ): Promise<Observation | undefined> {
    const { namespace, context, options } = this.#parts;
    const signal = this.#signal;
    const state = fresh.stateOf(workerId, namespace.now(), options);
    const given = state?.verdict?.observation;
    // With its Pod goes its log.
    const observation = given && (await this.#outcomes.withLog(given, state.logLines));
    const objects = fresh.objectsOf(workerId);
    const { job, pods } = objects;
    if (observation === undefined) return undefined;
    const { error, exitCode } = observation;
    const warning = warnings.get(subjectOf(objects) ?? '');
    // What the cluster warns of is none of a pilot's that came to its end.
    const isWarned = error !== undefined && exitCode === undefined && warning !== undefined;
    const message = isWarned ? `${error.message}; ${warning}` : (error?.message ?? pilotEnded);
    if (job !== undefined) {
      await namespace.client.delete(namespace.job(job.name), {
        signal,
        uid: job.uid,
        propagationPolicy: 'Background',
      });
    } else {
      for (const { name, uid } of pods) await namespace.client.delete(namespace.pod(name), { signal, uid });
    }
    this.#outcomes.show({ ...observation, ...(error && { error: { ...error, message } }) });
    const reason = exitCode === undefined ? 'GivenUp' : 'PilotEnded';
    if (job !== undefined) tell(namespace, context, { job, reason, message }, signal);
    return observation;
  }
}

/** Uid of what the cluster warns about: the Pod, or the Job that gets none. */
function subjectOf({ job, pods }: ReturnType<Following['objectsOf']>): string | undefined {
  return pods.at(-1)?.uid ?? job?.uid;
}

/** It changes during a wait, which the compiler does not know of a property. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

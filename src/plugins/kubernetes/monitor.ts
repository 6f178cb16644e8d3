import { toReason } from '../../worker/errors.ts';
import pMap from 'p-map';
import { Reflector } from '../../clients/kubernetes/reflector.ts';
import type { Worker } from '../../worker/worker.ts';
import type { CheckResult, Monitor, ObservationSink } from '../contracts/monitor.ts';
import { Follower } from './following/follower.ts';
import { K8sLogs } from './logs.ts';
import { isThere, jobUidOf, lookUp } from './following/look-up.ts';
import type { MonitorParts } from './following/monitor-parts.ts';
import { keepJob, keepPod } from './following/records.ts';

/** Missing workers asked for by name side by side. */
const checksAtOnce = 16;
/** How often time itself is looked at: waits that are over, signs of life, ms. */
const tickInterval = 1000;

/** Follows the Jobs and Pods of one namespace by two watches, however many queues and workers there are. */
export class K8sMonitor implements Monitor {
  readonly logs: K8sLogs;
  readonly #parts: MonitorParts;

  constructor(parts: MonitorParts) {
    this.#parts = parts;
    this.logs = new K8sLogs(parts.namespace, parts.context.clock);
  }

  async observe(sink: ObservationSink, signal: AbortSignal): Promise<void> {
    const { namespace, context, silence } = this.#parts;
    const { clock, random } = context;
    // Its workers are followed there: from now on this is its cluster.
    await namespace.pin.keep();
    const follower = new Follower(this.#parts, this.logs, sink, signal);
    const common = {
      client: namespace.client,
      labelSelector: namespace.selector,
      clock,
      random,
      ...(silence !== undefined && { silence }),
    };
    const jobs = new Reflector({
      ...common,
      path: namespace.jobs,
      handlers: follower.ofJobs,
      record: (object) => keepJob(object, namespace.factoryId),
      noTemplate: true,
    });
    const pods = new Reflector({
      ...common,
      path: namespace.pods,
      handlers: follower.ofPods,
      record: (object) => keepPod(object, namespace.factoryId),
    });
    namespace.followed.set(namespace.jobs, jobs).set(namespace.pods, pods);
    const ticking = async () => {
      while (!signal.aborted) {
        follower.tick([jobs.state, pods.state]);
        await clock.sleep(tickInterval, signal);
      }
    };
    await Promise.all([jobs.run(signal), pods.run(signal), ticking()]);
  }

  hearsAtOnce(): boolean {
    return true;
  }

  async check(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, CheckResult>> {
    const { namespace, options } = this.#parts;
    const results = new Map<number, CheckResult>();
    const unknown = ({ workerId }: Worker, error: unknown) =>
      results.set(workerId, { kind: 'unknown', error: toReason(error) });
    try {
      const ids = workers.map(({ workerId }) => workerId);
      const found = await lookUp(namespace, ids, signal);
      const now = namespace.now();
      const checkOne = async (worker: Worker) => {
        const { workerId } = worker;
        const observation = found.stateOf(workerId, now, options, jobUidOf(worker))?.observation;
        try {
          results.set(
            workerId,
            observation === undefined
              ? await this.#byName(worker, signal)
              : { kind: 'observed', observation },
          );
        } catch (error) {
          unknown(worker, error);
        }
      };
      await pMap(workers, checkOne, { concurrency: checksAtOnce });
    } catch (error) {
      for (const worker of workers) unknown(worker, error);
    }
    return results;
  }

  /** Labels say nothing of it; what took them away need not have ended it. */
  async #byName(worker: Worker, signal: AbortSignal): Promise<CheckResult> {
    const { namespace } = this.#parts;
    if (!(await isThere(namespace, worker, signal))) return { kind: 'absent' };
    const message = `the Job ${worker.name} in ${namespace.name} has lost its label thresher/factory or thresher/worker-id: put it back, or delete the Job`;
    return { kind: 'unknown', error: { code: 'k8s-marks-lost', message } };
  }
}

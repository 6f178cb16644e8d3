import { harmlessDrain } from '../../../clients/htcondor/drain.ts';
import { isHTCondorError } from '../../../clients/htcondor/errors.ts';
import type { CondorTools } from '../../../clients/htcondor/tools.ts';
import type { KubernetesClient } from '../../../clients/kubernetes/client.ts';
import { isKubernetesError } from '../../../clients/kubernetes/errors.ts';
import { collectionPath, objectPath, pods, type Resource } from '../../../clients/kubernetes/paths.ts';
import type { Clock } from '../../../util/clock.ts';
import { ThresherError } from '../../../worker/errors.ts';
import { slotAds, slotsOfDeployment } from '../slots.ts';
import { costAnnotation, type Deployment, slotAttributes, startdsOf, workerPod } from './facts.ts';
import { drainReason, lowestCost, planScale, type ScaleFacts, type ScalePlan } from './plan.ts';

const deployments: Resource = { group: 'apps', version: 'v1', resource: 'deployments' };

/** ms between looks at a pool that shrinks. */
const pause = 2000;

export interface ScaleOrder {
  readonly namespace: string;
  readonly deployment: string;
  readonly wanted: number;
  /** ms that draining may take. */
  readonly timeout: number;
}

export interface ScaleParts {
  readonly cluster: KubernetesClient;
  readonly tools: CondorTools;
  readonly clock: Clock;
  /** Hears each step as a sentence. */
  readonly onStep: (sentence: string) => void;
}

/** Scales the fixed workers of a pool. It can be repeated after any interruption. */
export class Scaling {
  readonly #order: ScaleOrder;
  readonly #parts: ScaleParts;
  #said = '';

  constructor(order: ScaleOrder, parts: ScaleParts) {
    this.#order = order;
    this.#parts = parts;
  }

  /**
   * Reaches the number of workers; a busy worker is never ended for it.
   * @throws ThresherError `pool-scale` with what it waits for when the time is over; KubernetesError, HTCondorError
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, onStep } = this.#parts;
    const { wanted, timeout, deployment } = this.#order;
    const end = clock.monotonic() + timeout;
    for (;;) {
      const object = await this.#deployment(signal);
      const replicas = object.spec?.replicas ?? 1;
      if (replicas < wanted) {
        await this.#carryOut(planScale(await this.#facts(object, signal)), signal);
        if (!(await this.#replicas(object, wanted, signal))) continue;
        onStep(`${deployment}: ${replicas} -> ${wanted} workers`);
        return;
      }
      const facts = await this.#facts(object, signal);
      const plan = planScale(facts);
      const refused = await this.#carryOut(plan, signal);
      const { waits } = planScale({ ...facts, refused });
      if (replicas === wanted && facts.pods.length <= wanted) {
        onStep(`${deployment} has ${wanted} ${wanted === 1 ? 'worker' : 'workers'}`);
        return;
      }
      if (plan.lowerTo < replicas && plan.mark.length === 0) {
        if (await this.#replicas(object, plan.lowerTo, signal)) {
          const which = plan.gone.length === 0 ? '' : `: ${plan.gone.join(', ')} can go`;
          onStep(`${deployment}: ${replicas} -> ${plan.lowerTo} workers${which}`);
        }
      } else if (waits.length > 0) this.#tell(waits.join('; '));
      if (clock.monotonic() >= end) throw this.#late(waits, replicas);
      await clock.sleep(plan.mark.length > 0 ? 0 : pause, signal);
      if (signal.aborted) throw this.#late(waits, replicas);
    }
  }

  async #deployment(signal: AbortSignal): Promise<Deployment> {
    const { namespace, deployment } = this.#order;
    try {
      const path = objectPath(deployments, namespace, deployment);
      return await this.#parts.cluster.get(path, { signal });
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-not-found')) throw error;
      const message = `there is no Deployment ${deployment} in the namespace ${namespace}: \`thresher pool manifests --apply\` makes it, and --namespace and --deployment name another`;
      throw new ThresherError('pool-scale', message, {}, { cause: error });
    }
  }

  async #facts(object: Deployment, signal: AbortSignal): Promise<ScaleFacts> {
    const { spec, status } = object;
    const replicas = spec?.replicas ?? 1;
    const { namespace, deployment, wanted } = this.#order;
    if ((status?.updatedReplicas ?? 0) < (status?.replicas ?? 0))
      throw new ThresherError(
        'pool-scale',
        `a rollout of ${deployment} is under way, in which Kubernetes itself chooses the Pods that go: wait for \`kubectl rollout status deployment/${deployment}\``,
      );
    const labels = Object.entries(spec?.selector?.matchLabels ?? {});
    if (labels.length === 0 || spec?.selector?.matchExpressions !== undefined)
      throw new ThresherError(
        'pool-scale',
        `the selector of ${deployment} must be labels (matchLabels) and nothing else`,
      );
    const labelSelector = labels.map(([key, value]) => `${key}=${value}`).join(',');
    const { items } = await this.#parts.cluster.list(
      collectionPath(pods, namespace),
      { labelSelector, signal },
      workerPod,
    );
    return { replicas, wanted, pods: items, startds: await this.#startds(replicas <= wanted, signal) };
  }

  /** @param growing a pool can grow before its collector answers */
  async #startds(growing: boolean, signal: AbortSignal): Promise<ScaleFacts['startds']> {
    try {
      const constraint = slotsOfDeployment(this.#order.deployment);
      const question = { constraint, attributes: slotAttributes };
      return startdsOf(await slotAds(this.#parts.tools, question, signal));
    } catch (error) {
      if (!growing || !isHTCondorError(error)) throw error;
      this.#tell(`${error.message}: drains of an earlier command, if any, go on`);
      return new Map();
    }
  }

  /** @returns busy slots that refused to drain */
  async #carryOut(plan: ScalePlan, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const refused = new Set<string>();
    const isIdle = 'State == "Unclaimed" && SlotType =!= "Dynamic"';
    for (const slot of plan.drainIdle) await this.#drain(slot, isIdle, signal);
    for (const slot of plan.drainBusy)
      if (!(await this.#drain(slot, harmlessDrain, signal))) refused.add(slot);
    for (const slot of plan.release) await this.#condorDrain(['-cancel', slot], signal);
    for (const name of plan.unmark) await this.#cost(name, null, signal);
    for (const name of plan.mark) await this.#cost(name, String(lowestCost), signal);
    return refused;
  }

  /**
   * The startd itself looks at its jobs when the order arrives: a look may be too old, and shows no retirement time of jobs.
   * @returns whether it drains; a worker that refuses is asked again after the next look
   */
  async #drain(slot: string, check: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#condorDrain(['-graceful', '-check', check, '-reason', drainReason, slot], signal);
      return true;
    } catch (error) {
      if (!isHTCondorError(error)) throw error;
      if (/already draining|already in progress/i.test(error.message)) return true;
      if (/Draining check expression/i.test(error.message)) return false;
      throw error;
    }
  }

  async #condorDrain(args: readonly string[], signal: AbortSignal): Promise<void> {
    const { tools } = this.#parts;
    const tool = { command: 'condor_drain', args, changes: true, timeLimit: 60_000 } as const;
    await tools.succeed(tool, signal);
  }

  /** A Pod that has gone meanwhile needs none. */
  async #cost(name: string, cost: string | null, signal: AbortSignal): Promise<void> {
    const path = objectPath(pods, this.#order.namespace, name);
    const patch = { metadata: { annotations: { [costAnnotation]: cost } } };
    try {
      await this.#parts.cluster.patch(path, patch, { kind: 'merge', fieldManager: 'thresher-pool', signal });
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-not-found')) throw error;
    }
  }

  /** Only if the Deployment is as it was read: another program may scale it, too. */
  async #replicas({ metadata }: Deployment, replicas: number, signal: AbortSignal): Promise<boolean> {
    const { namespace, deployment } = this.#order;
    const path = objectPath(deployments, namespace, deployment, 'scale');
    const patch = { metadata: { resourceVersion: metadata?.resourceVersion }, spec: { replicas } };
    try {
      await this.#parts.cluster.patch(path, patch, { kind: 'merge', fieldManager: 'thresher-pool', signal });
      return true;
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-conflict')) throw error;
      return false;
    }
  }

  #tell(sentence: string): void {
    if (sentence === this.#said) return;
    this.#said = sentence;
    this.#parts.onStep(sentence);
  }

  #late(waits: readonly string[], replicas: number): ThresherError {
    const { deployment, wanted } = this.#order;
    const why = waits.length === 0 ? 'Kubernetes has not deleted the Pods yet' : waits.join('; ');
    const message = `${deployment} has ${replicas} workers and should have ${wanted}: ${why}. Repeat the command to go on, or \`thresher pool scale ${replicas}\` to keep them`;
    return new ThresherError('pool-scale', message);
  }
}

import { collectionPath } from '../../clients/kubernetes/paths.ts';
import type { Context } from '../contracts/context.ts';
import type { KubernetesHub } from './hub.ts';
import { problemOf } from './problem.ts';

const kind = { group: '', version: 'v1', resource: 'events' };

/** What `kubectl describe job`, and `kubectl get events` after it is gone, shows of a decision of ours. */
export interface Decision {
  readonly job: { readonly name: string; readonly uid: string };
  readonly reason: 'GivenUp' | 'Killed';
  readonly message: string;
}

/** Longest message of an Event. Source: Kubernetes' validation of events. */
const longest = 1024;

/** Tells, and goes on: an Event that is not written changes nothing. */
export async function tell(
  hub: KubernetesHub,
  { clock, random, log }: Context,
  { job, reason, message }: Decision,
  signal: AbortSignal,
): Promise<void> {
  const { client, namespace, factoryId } = hub;
  const at = new Date(clock.now()).toISOString();
  const unique = Math.floor(random() * 2 ** 48).toString(16);
  const event = {
    ...{ apiVersion: 'v1', kind: 'Event' },
    metadata: { name: `${job.name}.${unique}`, namespace },
    involvedObject: { apiVersion: 'batch/v1', kind: 'Job', namespace, ...job },
    type: reason === 'GivenUp' ? 'Warning' : 'Normal',
    ...{ reason, message: message.slice(0, longest) },
    source: { component: 'thresher' },
    ...{ firstTimestamp: at.replace(/\.\d+Z$/, 'Z'), lastTimestamp: at.replace(/\.\d+Z$/, 'Z'), count: 1 },
    ...{ reportingComponent: 'thresher', reportingInstance: factoryId },
  };
  try {
    await client.create(collectionPath(kind, namespace), event, { signal });
  } catch (error) {
    log.debug('event not written', { job: job.name, ...problemOf(error) });
  }
}

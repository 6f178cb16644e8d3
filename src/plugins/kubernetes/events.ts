import { toReason } from '../../worker/errors.ts';
import { collectionPath } from '../../clients/kubernetes/paths.ts';
import type { Host } from '../contracts/context.ts';
import type { K8sNamespace } from './namespace.ts';
import { beginningFromOutside, headOf } from '../../util/beginning.ts';
import { eachGivingWay, givingWay, isoSeconds } from '../../util/clock.ts';

const kind = { group: '', version: 'v1', resource: 'events' };

/** A decision of ours, as `kubectl describe job` shows it, and `kubectl get events` after the Job is gone. */
export interface Decision {
  readonly job: { readonly name: string; readonly uid: string };
  readonly reason: 'GivenUp' | 'Killed' | 'PilotEnded';
  readonly message: string;
}

/** Longest message of an Event. Source: Kubernetes' validation of events. */
const longest = 1024;
/** Longest piece of one that is shown, and longest reason of one. Source: Kubernetes' validation of events. */
const longestWarning = 300;
const longestReason = 128;

/** Tells, and goes on at once: an Event that is not written changes nothing. */
export function tell(
  namespace: K8sNamespace,
  { clock, random, log }: Pick<Host, 'clock' | 'random' | 'log'>,
  { job, reason, message }: Decision,
  signal: AbortSignal,
): void {
  const { client, factoryId } = namespace;
  if (namespace.events.available < 1) return;
  namespace.events.take(1);
  const at = isoSeconds(clock.now());
  const unique = Math.floor(random() * 2 ** 48).toString(16);
  const { name, uid } = job;
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${unique}`, namespace: namespace.name },
    involvedObject: { apiVersion: 'batch/v1', kind: 'Job', namespace: namespace.name, name, uid },
    type: reason === 'GivenUp' ? 'Warning' : 'Normal',
    reason,
    // It may have words of the cluster, and everybody who may read Events reads them.
    message: beginningFromOutside(message, longest),
    source: { component: 'thresher' },
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
    reportingComponent: 'thresher',
    reportingInstance: factoryId,
  };
  client
    .create(collectionPath(kind, namespace.name), event, { signal, once: true })
    .catch((error: unknown) => {
      log.debug('event not written', { job: name, ...toReason(error) });
    });
}

interface EventObject {
  readonly involvedObject?: { readonly uid?: string | null } | null;
  readonly reason?: string | null;
  readonly message?: string | null;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
}

/**
 * "FailedMount: MountVolume.SetUp failed ...", by uid: what the cluster warned of last about each of these objects. One
 * question for all of them, since the server looks at every Event of the namespace for each.
 */
export async function lastWarnings(
  namespace: K8sNamespace,
  uids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const last = new Map<string, { readonly at: number; readonly reason: string; readonly head: string }>();
  if (uids.length === 0) return new Map();
  const wanted = new Set(uids);
  const only = uids.length === 1 ? `involvedObject.uid=${uids[0] ?? ''},` : '';
  const options = { fieldSelector: `${only}type=Warning`, signal, once: true };
  try {
    await namespace.client.list(collectionPath(kind, namespace.name), options, (object) => {
      const { involvedObject, reason, message, lastTimestamp, eventTime } = object as EventObject;
      const uid = involvedObject?.uid ?? '';
      const at = Date.parse(lastTimestamp ?? eventTime ?? '') || 0;
      if (reason && wanted.has(uid) && at >= (last.get(uid)?.at ?? 0))
        last.set(uid, {
          at,
          reason: headOf(reason, longestReason),
          head: headOf(message ?? '', longestWarning),
        });
      // Nothing of it is kept.
      return undefined;
    });
  } catch {
    // Not every cluster gives this right, and Events are only a help.
  }
  const shown = await eachGivingWay(givingWay(namespace), last, ([uid, { reason, head }]) => {
    return [
      uid,
      `${beginningFromOutside(reason, longestReason)}: ${beginningFromOutside(head, longestWarning)}`,
    ] as const;
  });
  return new Map(shown);
}

import { type KubernetesObject, presentIn } from '../../../clients/kubernetes/objects.ts';
import { type AdLines, isTrue, numberIn, textIn } from '../../../clients/htcondor/ad-lines.ts';
import type { WorkerPod, WorkerStartd } from './plan.ts';

export const costAnnotation = 'controller.kubernetes.io/pod-deletion-cost';

/** The parts of a Deployment that scaling reads. */
export interface Deployment extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly selector?: {
      readonly matchLabels?: Readonly<Record<string, string>>;
      readonly matchExpressions?: unknown[];
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
  };
}

interface PodObject extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string | null } | null;
  readonly status?: {
    readonly phase?: string | null;
    readonly conditions?: readonly ({ readonly type?: string; readonly status?: string } | null)[] | null;
    readonly containerStatuses?:
      readonly ({ readonly state?: { readonly running?: unknown } | null } | null)[] | null;
  } | null;
}

/** @returns undefined for a Pod that is no replica any more: it has ended, or is being deleted */
export function workerPod(object: KubernetesObject): WorkerPod | undefined {
  const { metadata, spec, status } = object as PodObject;
  const phase = status?.phase ?? 'Pending';
  if (metadata?.deletionTimestamp || phase === 'Succeeded' || phase === 'Failed') return undefined;
  const cost = Number(metadata?.annotations?.[costAnnotation] ?? 0);
  return {
    name: metadata?.name ?? '',
    isScheduled: (spec?.nodeName ?? '') !== '',
    phase: phase === 'Running' || phase === 'Unknown' ? phase : 'Pending',
    isReady: presentIn(status?.conditions).some(({ type, status }) => type === 'Ready' && status === 'True'),
    // Until the kubelet has told, a container may run.
    runs: status?.containerStatuses
      ? presentIn(status.containerStatuses).some(({ state }) => Boolean(state?.running))
      : phase !== 'Pending',
    cost: Number.isFinite(cost) ? cost : 0,
  };
}

/** Attributes of slots that scaling reads. */
export const slotAttributes = [
  ...['Name', 'Machine', 'SlotType', 'State', 'Cpus'],
  ...['Draining', 'DrainReason', 'MaxJobRetirementTime'],
] as const;

/** Startds by the host of their machine, which is the name of the Pod. */
export function startdsOf(slots: readonly AdLines[]): ReadonlyMap<string, WorkerStartd> {
  const hosts = Map.groupBy(slots, (slot) => textIn(slot, 'Machine')?.split('.')[0] ?? '');
  return new Map(
    [...hosts].map(([host, ads]) => {
      const whole = ads.filter((slot) => textIn(slot, 'SlotType') !== 'Dynamic');
      const claimed = ads.filter((slot) => isClaimed(slot));
      const draining = ads.some((slot) => isTrue(slot, 'Draining') || textIn(slot, 'State') === 'Drained');
      const isFree = claimed.length === 0 && ads.length === whole.length;
      return [
        host,
        {
          slot: textIn(whole[0] ?? new Map(), 'Name') ?? '',
          busyCores: isFree
            ? 0
            : Math.max(
                1,
                claimed.reduce((sum, slot) => sum + (numberIn(slot, 'Cpus') ?? 1), 0),
              ),
          draining,
          drained: draining && isFree && whole.every((slot) => textIn(slot, 'State') === 'Drained'),
          drainReason: ads.map((slot) => textIn(slot, 'DrainReason')).find((reason) => reason !== undefined),
          retirement: Math.min(...whole.map((slot) => numberIn(slot, 'MaxJobRetirementTime') ?? 0)),
        },
      ] as const;
    }),
  );
}

function isClaimed(slot: AdLines): boolean {
  const state = textIn(slot, 'State');
  return state === 'Claimed' || state === 'Preempting' || state === 'Matched';
}

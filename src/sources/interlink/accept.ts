import type { Container, RetrievedPodData } from '../../clients/interlink/wire.ts';
import { payloadProblems } from '../../worker/payload-check.ts';
import { nameProblems } from './pod/names.ts';
import type { PlannedPod, Planner } from './planner.ts';
import type { NamedImage, PodRecord } from './pods/pod-record.ts';
import { Refusal } from './refusal.ts';

export interface Accepted {
  readonly record: PodRecord;
  readonly plan: PlannedPod;
}

/** As many mistakes as one sentence may have, and as many as the planner's may. */
const most = 5;
const mostOfPlan = 20;

/** A Pod that can become a job. @throws Refusal with all that is wrong in it */
export function acceptedPod(data: RetrievedPodData, planner: Planner, acceptedAt: number): Accepted {
  const { metadata, spec } = data.pod;
  // The names become paths, whatever the planner does with them.
  const wrong = nameProblems(data.pod).map(({ message }) => message);
  if (wrong.length > 0) throw new Refusal(400, wrong.slice(0, most).join('; '));
  const plan = planner(data);
  if (isProblems(plan)) throw new Refusal(400, plan.slice(0, mostOfPlan).join('; '));
  const tooMuch = payloadProblems(plan.payload).map(({ message }) => message);
  if (tooMuch.length > 0) throw new Refusal(400, tooMuch.slice(0, most).join('; '));
  const { uid = '', name = '', namespace = '' } = metadata;
  const containers = namedImages(spec.containers, plan);
  const initContainers = namedImages(spec.initContainers ?? [], plan);
  const record: PodRecord = {
    version: 1,
    uid,
    name,
    namespace,
    containers,
    initContainers,
    acceptedAt,
  };
  return { record, plan };
}

function isProblems(plan: PlannedPod | readonly string[]): plan is readonly string[] {
  return Array.isArray(plan);
}

/** Containers that stay in the cluster are none of the job's. */
function namedImages(listed: readonly Container[], { containers }: PlannedPod): NamedImage[] {
  const names = new Set(containers);
  const ofJob = listed.filter(({ name }) => names.has(name));
  return ofJob.map(({ name, image = '', readinessProbe }) => ({
    name,
    image,
    ...(readinessProbe && { isProbed: true as const }),
  }));
}

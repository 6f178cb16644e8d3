import type { Found } from '../contracts/sweeper.ts';
import { fencedAttempt, handleOf } from './fence.ts';
import { Following } from './following.ts';
import type { KubernetesHub } from './hub.ts';
import { identityOf, isOurs, workerIdOf } from './marks.ts';
import type { StateOptions } from './pod-state.ts';
import { keepJob, keepPod } from './records.ts';
import type { ObjectMeta } from './types.ts';

interface Listed {
  readonly metadata: ObjectMeta;
  readonly workerId: number | undefined;
}

/** Every Job with our mark, and every Pod that has none any more. @throws KubernetesError when not all of it can be said. */
export async function listAll(
  hub: KubernetesHub,
  now: number,
  options: (queue: string | undefined) => StateOptions,
  signal: AbortSignal,
): Promise<readonly Found[]> {
  const { client, factoryId, namespace, selector } = hub;
  const following = new Following();
  const list = (path: string, keep: typeof keepJob, put: 'putJob' | 'putPod') =>
    client.list(path, { labelSelector: selector, signal }, (object): Listed | undefined => {
      const { metadata } = object as { readonly metadata?: ObjectMeta };
      if (metadata === undefined || !isOurs(metadata, factoryId)) return undefined;
      const kept = keep(object, factoryId);
      if (kept !== undefined) following[put](kept);
      return { metadata, workerId: workerIdOf(metadata) };
    });
  // Jobs after Pods: a Job that is made between the two shows no Pod yet, and not a Pod no Job.
  const pods = await list(hub.pods, keepPod, 'putPod');
  const jobs = await list(hub.jobs, keepJob, 'putJob');
  const withJob = new Set(jobs.items.map(({ workerId }) => workerId));
  return [
    ...jobs.items.map((job) => ofJob(job)),
    ...pods.items.filter(({ workerId }) => workerId === undefined || !withJob.has(workerId)).map(ofPod),
  ];

  function ofJob({ metadata, workerId }: Listed): Found {
    const { name = '', uid } = metadata;
    const found = { place: `${namespace}/jobs/${name}`, handle: handleOf(name, uid) };
    const identity = identityOf(metadata);
    if (identity === undefined || workerId === undefined) return found;
    // Whether a fenced worker is to be tried again is for the submitter to say.
    if (fencedAttempt(metadata) !== undefined) return { ...found, identity };
    const state = following.stateOf(workerId, now, options);
    return { ...found, identity, ...(state && { observation: state.observation }) };
  }

  function ofPod({ metadata }: Listed): Found {
    const { name = '', uid } = metadata;
    return { place: `${namespace}/pods/${name}`, handle: handleOf(name, uid) };
  }
}

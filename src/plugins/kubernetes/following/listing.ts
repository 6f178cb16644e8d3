import type { Handle } from '../../../worker/worker.ts';
import type { Found } from '../../contracts/sweeper.ts';
import { fencedAttempt, handleOf } from '../fence.ts';
import type { OptionsOf } from './following.ts';
import type { K8sNamespace } from '../namespace.ts';
import { type Identity, identityOf, isOurs, workerIdOf } from '../marks.ts';
import { lookUpMany } from './look-up.ts';
import { jobOf, makerOf } from './records.ts';
import type { ObjectMeta } from '../state/types.ts';

interface Listed {
  readonly metadata: ObjectMeta;
  readonly workerId: number | undefined;
}

/**
 * Every Job with our mark, and every Pod that has none any more. How they are is asked only where it counts.
 * @throws KubernetesError when not all of it can be said.
 */
export async function listAll(
  namespace: K8sNamespace,
  now: number,
  options: OptionsOf,
  signal: AbortSignal,
  isAlive: (workerId: number) => boolean = () => false,
): Promise<readonly Found[]> {
  const { client, factoryId, selector } = namespace;
  const list = async (path: string) => {
    const selection = { labelSelector: selector, signal, metadataOnly: true };
    const told = namespace.followed.get(path)?.version;
    const listed = await client.list(path, selection, ({ metadata }): Listed | undefined => {
      if (metadata === undefined || !isOurs(metadata, factoryId)) return undefined;
      return { metadata, workerId: workerIdOf(metadata) };
    });
    namespace.followed.get(path)?.listed(listed.resourceVersion, told);
    return listed;
  };
  // Jobs after Pods: a Job that is made between the two shows no Pod yet, and not a Pod no Job.
  const pods = await list(namespace.pods);
  const jobs = await list(namespace.jobs);
  const withJob = new Set(jobs.items.map(({ metadata }) => metadata.name));
  // A Pod on its way out follows its Job, or was told to go: thresher leaves it to the cluster. One that no Job made is alone, whatever its labels say.
  const alone = pods.items.filter(
    ({ metadata }) =>
      !metadata.deletionTimestamp && (!withJob.has(jobOf(metadata)) || makerOf(metadata) === undefined),
  );
  const asked = [...jobs.items, ...alone].flatMap(({ workerId, metadata }) =>
    workerId === undefined || isAlive(workerId) || fencedAttempt(metadata) !== undefined ? [] : [workerId],
  );
  const following = await lookUpMany(namespace, [...new Set(asked)], signal);
  const found = (
    { metadata, workerId }: Listed,
    place: string,
    identity: Identity | undefined,
    handle: Handle,
  ): Found => {
    if (identity === undefined || workerId === undefined) return { place, handle };
    // Whether a fenced worker is to be tried again is for the submitter to say.
    if (fencedAttempt(metadata) !== undefined) return { place, handle, identity };
    const state = following.stateOf(workerId, now, options);
    return { place, handle, identity, ...(state && { observation: state.observation }) };
  };
  return [
    ...jobs.items.map((job) => {
      const { name = '', uid } = job.metadata;
      return found(job, `${namespace.name}/jobs/${name}`, identityOf(job.metadata), handleOf(name, uid));
    }),
    ...alone.map((pod) => {
      const { name = '', uid } = pod.metadata;
      const jobName = makerOf(pod.metadata) && jobOf(pod.metadata);
      // Its uid is not that of the Job which the worker had.
      const handle = { ...handleOf(jobName ?? name, undefined), ...(uid && { podUid: uid }) };
      const identity = jobName === undefined ? undefined : identityOf(pod.metadata, jobName);
      return found(pod, `${namespace.name}/pods/${name}`, identity, handle);
    }),
  ];
}

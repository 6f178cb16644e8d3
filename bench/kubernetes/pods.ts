import pMap from 'p-map';
import { systemClock } from '../../src/util/clock.ts';
import type { Job, KubeClient, Namespace, Pod } from '../../test/support/kubernetes.ts';

/** Patches at once, where no rate is asked for. */
const atOnce = 32;

/** A kubelet's report when the pilot of this Pod ends well. */
function ended(): object {
  const finishedAt = `${new Date().toISOString().slice(0, 19)}Z`;
  const terminated = { exitCode: 0, reason: 'Completed', startedAt: finishedAt, finishedAt };
  const status = { name: 'pilot', image: 'x', imageID: 'x', ready: false, restartCount: 0 };
  return {
    status: {
      phase: 'Succeeded',
      containerStatuses: [{ ...status, started: false, state: { terminated } }],
    },
  };
}

/** Ends a Pod as its kubelet would. @returns when the API server had taken it, ms UTC. */
export async function endPod(client: KubeClient, space: Namespace, name: string): Promise<number> {
  await client.patch(`${space.core('pods', name)}/status`, ended());
  return Date.now();
}

export async function endPods(space: Namespace, names: readonly string[]): Promise<void> {
  await pMap(names, (name) => endPod(space.client, space, name), { concurrency: atOnce });
}

/** All Pods of a namespace, page by page: answers of ten thousand are long. */
export async function podsOf(space: Namespace): Promise<Pod[]> {
  return all<Pod>(space.client, space.core('pods'));
}

/** Waits until so many Pods run there. */
export async function untilRunning(space: Namespace, count: number, patience: number): Promise<void> {
  await until(`${count} Pods run`, patience, async () => {
    const pods = await podsOf(space);
    return pods.filter(({ status }) => status.phase === 'Running').length >= count;
  });
}

/** Waits until the Job controller has nothing more to do with so many ended Jobs. */
export async function untilComplete(space: Namespace, count: number, patience: number): Promise<void> {
  await until(`${count} Jobs are complete`, patience, async () => {
    const jobs = await all<Job>(space.client, space.jobs());
    return jobs.filter(isComplete).length >= count;
  });
}

function isComplete({ status }: Job): boolean {
  return status.conditions?.some((one) => one.type === 'Complete' && one.status === 'True') ?? false;
}

async function until(what: string, patience: number, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + patience;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`in vain waited for: ${what}`);
    // Each look is a list of all, which the server would otherwise be busy with.
    await systemClock.sleep(500);
  }
}

/** Jobs and Pods that are there. */
export async function left(space: Namespace): Promise<number> {
  const [jobs, pods] = await Promise.all([all(space.client, space.jobs()), podsOf(space)]);
  return jobs.length + pods.length;
}

interface Page<T> {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly T[];
}

async function all<T>(client: KubeClient, path: string): Promise<T[]> {
  const items: T[] = [];
  for (let next = ''; ;) {
    const page = await client.request<Page<T>>('GET', `${path}?limit=500&continue=${next}`);
    items.push(...page.items);
    next = page.metadata.continue ?? '';
    if (next === '') return items;
  }
}

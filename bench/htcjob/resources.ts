import { finalizer, htcJobs, type HtcJobSpec, type HtcJobStatus } from '../../src/clients/htcjob/resource.ts';
import { collectionPath, objectPath } from '../../src/clients/kubernetes/paths.ts';
import { type HtcJobObject, removeLease } from '../../test/support/htcjobs.ts';
import type { ControlPlane, Namespace } from '../../test/support/kubernetes.ts';
import { until } from '../../test/support/until.ts';

/** Requests of the benchmark itself that are under way at a time. */
const atOnce = 16;
const patience = 600_000;

/** HTCJobs of one namespace, many at a time. */
export class Resources {
  readonly #space: Namespace;

  constructor(space: Namespace) {
    this.#space = space;
  }

  async create(names: readonly string[], source: string): Promise<void> {
    const spec: HtcJobSpec = { name: 'bench', script: { image: 'none', command: 'bash', source } };
    const path = collectionPath(htcJobs, this.#space.name);
    await inParallel(names, async (name) => {
      const metadata = { name };
      await this.#space.client.create(path, {
        apiVersion: 'htc.cern.ch/v1alpha1',
        kind: 'HTCJob',
        metadata,
        spec,
      });
    });
  }

  /** Resources that a daemon of this factory brought to their end. */
  async createFinished(names: readonly string[], factory: string): Promise<void> {
    await this.create(names, 'true');
    const at = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const lastTransitionTime = at;
    const complete = {
      type: 'Complete',
      status: 'True',
      reason: 'Succeeded',
      message: '',
      lastTransitionTime,
    } as const;
    await inParallel(await this.list(), async ({ metadata }) => {
      const { name, uid = '' } = metadata;
      const path = objectPath(htcJobs, this.#space.name, name);
      const status: HtcJobStatus = {
        active: 0,
        succeeded: 1,
        failed: 0,
        held: 0,
        jobid: ['1.0'],
        jobIds: ['1.0'],
        clusterId: '1',
        uniqId: uid,
        factory,
        reason: 'Succeeded',
        conditions: [complete],
        returnCodes: [],
        completedIndexes: '0',
        observedGeneration: 1,
        startTime: at,
        completionTime: at,
      };
      await this.#space.client.patch(path, { metadata: { finalizers: [finalizer] } });
      await this.#space.client.patch(`${path}/status`, { status });
    });
  }

  list(): Promise<readonly HtcJobObject[]> {
    return this.#space.client.list<HtcJobObject>(collectionPath(htcJobs, this.#space.name));
  }

  /** Looks until the status of each of them is so. @param pause between two looks, ms */
  async untilAll(what: string, holds: (status: HtcJobStatus) => boolean, pause = 250): Promise<void> {
    await until(
      what,
      async () => {
        await new Promise((resolve) => setTimeout(resolve, pause));
        return (await this.list()).every(({ status = {} }) => holds(status));
      },
      patience,
    );
  }

  /** The least that an operator has to do with each, as many at a time. */
  async changeTwice(): Promise<void> {
    await inParallel(await this.list(), async ({ metadata: { name } }) => {
      const path = `${objectPath(htcJobs, this.#space.name, name)}/status`;
      for (const clusterId of ['1', '2']) await this.#space.client.patch(path, { status: { clusterId } });
    });
  }

  /** Takes away the finalizers and the Lease, and leaves the rest to the namespace's own end. */
  async drop(): Promise<void> {
    const patch = { metadata: { finalizers: null } };
    await inParallel(await this.list(), async ({ metadata }) => {
      await this.#space.client.patch(objectPath(htcJobs, this.#space.name, metadata.name), patch);
    });
    await removeLease(this.#space);
    await this.#space[Symbol.asyncDispose]();
  }
}

/** Requests for HTCJobs that the API server has answered since its start, by verb; watches count when they begin. */
export async function requestsFor({
  client,
}: Pick<ControlPlane, 'client'>): Promise<Readonly<Record<string, number>>> {
  const { text } = await client.raw('GET', '/metrics');
  const counts: Record<string, number> = {};
  for (const line of text.split('\n')) {
    if (!line.startsWith('apiserver_request_total{') || !line.includes('resource="htcjobs"')) continue;
    const [, verb = ''] = /verb="([^"]*)"/.exec(line) ?? [];
    counts[verb] = (counts[verb] ?? 0) + Number(line.slice(line.lastIndexOf('}') + 1));
  }
  return counts;
}

async function inParallel<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = all.values();
  const worker = async () => {
    for (const one of left) await work(one);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

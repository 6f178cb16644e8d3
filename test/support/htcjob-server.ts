import type { ListOptions, PatchOptions, WatchOptions } from '../../src/clients/kubernetes/client.ts';
import { KubernetesError } from '../../src/clients/kubernetes/errors.ts';
import type { KubernetesObject, WatchEvent } from '../../src/clients/kubernetes/objects.ts';
import type { HtcJob, HtcJobMeta, HtcJobStatus } from '../../src/clients/htcjob/resource.ts';
import type { OperatorClient } from '../../src/sources/htcjob/operator-host.ts';

/** A request that changes or reads a resource, as "VERB NAME" or "VERB NAME/status"; lists and watches are "LIST", "WATCH". */
export type Asked = string;

/**
 * HTCJobs, a Lease and Events behind the calls of the operator, in this process: for counts of requests. How a real server behaves
 * is not to be learnt from it.
 */
export class HtcJobServer implements OperatorClient {
  readonly objects = new Map<string, HtcJob>();
  readonly asked: Asked[] = [];
  /** Requests for the Lease: the operator has one, however many resources there are. */
  leaseRequests = 0;
  /** Requests for the Lease wait for it. */
  leaseDelay: PromiseWithResolvers<undefined> | undefined;
  lease: KubernetesObject | undefined;
  readonly clockOffset = 0;
  #version = 1;
  /** All events since the start, oldest first. */
  readonly #events: (WatchEvent & { readonly version: number })[] = [];
  #more = Promise.withResolvers<undefined>();
  #restored = new AbortController();

  /** Adds a resource, as a user's or an earlier operator's. */
  add(job: HtcJob): void {
    this.#store('ADDED', job);
  }

  /** Removes a resource at once, as for somebody who took its finalizers away. */
  remove(name: string): void {
    const job = this.objects.get(name);
    if (job === undefined) return;
    const object = this.#store('DELETED', job);
    this.objects.delete(object.metadata.name);
  }

  /**
   * Has the objects of an earlier moment, as after a restore of its etcd.
   * @param version of the server from now on: `etcdutl snapshot restore` may be told to raise it above all that was
   */
  restore(objects: ReadonlyMap<string, HtcJob>, version: number): void {
    this.objects.clear();
    for (const [name, object] of objects) this.objects.set(name, object);
    this.#version = version;
    this.#events.length = 0;
    this.#restored.abort();
    this.#restored = new AbortController();
  }

  count(start: string): number {
    return this.asked.filter((one) => one.startsWith(start)).length;
  }

  async list<R>(_: string, __: ListOptions, record: (object: KubernetesObject) => R | undefined) {
    this.asked.push('LIST');
    const items = [...this.objects.values()].flatMap((object) => record(object) ?? []);
    return { items, resourceVersion: String(this.#version) };
  }

  async version(): Promise<string> {
    this.asked.push('LIST');
    return String(this.#version);
  }

  async *watch(_: string, options: WatchOptions, opened?: () => void): AsyncGenerator<WatchEvent> {
    const { signal, resourceVersion } = options;
    this.asked.push('WATCH');
    let next = this.#events.findIndex(({ version }) => version > Number(resourceVersion));
    if (next < 0) next = this.#events.length;
    opened?.();
    const ends = AbortSignal.any([signal, this.#restored.signal]);
    // It may end while an event is taken, when nobody listens yet.
    const ended = new Promise((resolve) => {
      ends.addEventListener('abort', resolve, { once: true });
    });
    while (!ends.aborted) {
      for (let event = this.#events[next]; event !== undefined; event = this.#events[++next]) yield event;
      await Promise.race([this.#more.promise, ended]);
    }
    if (!signal.aborted)
      throw new KubernetesError({ code: 'kubernetes-gone', message: 'compacted', maybeDone: false });
  }

  async get(path: string): Promise<KubernetesObject> {
    if (isLease(path)) {
      this.leaseRequests++;
      await this.leaseDelay?.promise;
      if (this.lease === undefined) throw notFound(path);
      return this.lease;
    }
    const { name } = placeOf(path);
    this.asked.push(`GET ${name}`);
    return this.#object(path);
  }

  async create<T extends KubernetesObject>(path: string, object: T): Promise<T> {
    if (isLease(path)) {
      this.leaseRequests++;
      this.lease = { ...object, metadata: { ...object.metadata, resourceVersion: '1' } };
    } else this.asked.push('EVENT');
    return object;
  }

  async patch(path: string, patch: unknown, { kind }: PatchOptions): Promise<KubernetesObject> {
    if (isLease(path)) {
      this.leaseRequests++;
      const { metadata } = patch as KubernetesObject;
      this.lease = {
        ...this.lease,
        ...(patch as object),
        metadata: { ...this.lease?.metadata, ...metadata },
      };
      return this.lease;
    }
    const { name, subresource } = placeOf(path);
    this.asked.push(subresource === '' ? `PATCH ${name}` : `PATCH ${name}/${subresource}`);
    const before = this.#object(path);
    const { metadata, status } = patch as { readonly metadata: HtcJobMeta; readonly status?: HtcJobStatus };
    if (metadata.resourceVersion !== before.metadata.resourceVersion) throw conflict(path);
    const isStatus = kind === 'apply' && status !== undefined;
    return this.#store('MODIFIED', {
      ...before,
      ...(isStatus && { status }),
      metadata: { ...before.metadata, ...(!isStatus && { finalizers: metadata.finalizers ?? [] }) },
    });
  }

  async delete(path: string): Promise<void> {
    this.asked.push(`DELETE ${placeOf(path).name}`);
    this.#object(path);
  }

  #object(path: string): HtcJob {
    const object = this.objects.get(placeOf(path).name);
    if (object === undefined) throw notFound(path);
    return object;
  }

  #store(type: WatchEvent['type'], job: HtcJob): HtcJob {
    this.#version++;
    const object = { ...job, metadata: { ...job.metadata, resourceVersion: String(this.#version) } };
    this.objects.set(object.metadata.name, object);
    this.#events.push({ type, object, version: this.#version });
    this.#more.resolve(undefined);
    this.#more = Promise.withResolvers();
    return object;
  }
}

function isLease(path: string): boolean {
  return path.includes('/leases');
}

function placeOf(path: string): { readonly name: string; readonly subresource: string } {
  const [, name = '', subresource = ''] = /\/htcjobs\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  return { name, subresource };
}

function notFound(path: string): KubernetesError {
  return new KubernetesError({ code: 'kubernetes-not-found', message: `no ${path}`, maybeDone: false });
}

function conflict(path: string): KubernetesError {
  return new KubernetesError({ code: 'kubernetes-conflict', message: `another ${path}`, maybeDone: false });
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { crd } from '../../src/clients/htcjob/crd.ts';
import { finalizerPolicy } from '../../src/clients/htcjob/manifests.ts';
import type { HtcJobSpec, HtcJobStatus } from '../../src/clients/htcjob/resource.ts';
import type { ControlPlane, KubeClient, KubeObject, Namespace } from './kubernetes.ts';
import { until } from './until.ts';

export interface HtcJobObject extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly finalizers?: readonly string[] };
  readonly spec: HtcJobSpec;
  readonly status?: HtcJobStatus;
}

export interface KubeEvent extends KubeObject {
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly uid: string };
}

export const examples = join(import.meta.dirname, '../../templates/kubernetes/htcjob/examples');

/** An example that thresher brings: those of htc-operator as they are, and others. @param image in the place of the one it names */
export function example(name: string, image?: string): HtcJobObject {
  const object = parse(readFileSync(join(examples, `${name}.yaml`), 'utf8')) as HtcJobObject;
  if (image === undefined) return object;
  return { ...object, spec: { ...object.spec, script: { ...object.spec.script, image } } };
}

/** Whether all jobs of a HTCJob have ended. */
export function isOver({ completionTime }: HtcJobStatus): boolean {
  return completionTime !== undefined;
}

function apply(client: ControlPlane['client'], path: string, object: object): Promise<unknown> {
  const type = { 'content-type': 'application/apply-patch+yaml' };
  return client.request('PATCH', `${path}?fieldManager=tests&force=true`, stringify(object), type);
}

/** Applies the CustomResourceDefinition as it is now, and waits until the server serves it. */
export async function applyCrd({ client }: Pick<ControlPlane, 'client'>): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/htcjobs.htc.cern.ch';
  await apply(client, path, crd());
  await until('the server serves HTCJobs', async () => {
    const { status } = await client.raw('GET', '/apis/htc.cern.ch/v1alpha1/htcjobs?limit=1');
    return status === 200;
  });
}

/**
 * Applies `finalizer-policy.yaml` for one namespace alone: operators of the other ones are tested without it.
 * @returns takes it back
 */
export async function applyFinalizerPolicy({
  client,
  name,
}: Pick<Namespace, 'client' | 'name'>): Promise<() => Promise<void>> {
  const [policy = {}, binding = {}] = finalizerPolicy();
  const admission = '/apis/admissionregistration.k8s.io/v1';
  const [policies, bindings] = ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'].map(
    (plural) => `${admission}/${plural}/${name}`,
  ) as [string, string];
  const matchResources = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } };
  await apply(client, policies, { ...policy, metadata: { name } });
  await apply(client, bindings, {
    ...binding,
    metadata: { name },
    spec: { policyName: name, matchResources },
  });
  return async () => {
    await client.delete(bindings, {});
    await client.delete(policies, {});
  };
}

/** Applies objects of `thresher htcjob rbac`. */
export async function applyRights(
  { client }: Pick<ControlPlane, 'client'>,
  objects: readonly object[],
): Promise<void> {
  for (const object of objects as readonly KubeObject[]) {
    const { apiVersion = 'v1', kind = '', metadata } = object;
    const group = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
    const within = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
    const path = `${group}${within}/${kind.toLowerCase()}s/${metadata.name}`;
    await apply(client, path, object);
  }
}

/** The Lease of an operator that follows a namespace of a test: named after that, in a namespace that no test deletes. */
export function leaseOf({ name }: Pick<Namespace, 'name'>) {
  return { leaseNamespace: 'default', leaseName: name };
}

/** Removes the Lease of `leaseOf`, once its operator has stopped. One that is not there is no error. */
export async function removeLease(space: Pick<Namespace, 'client' | 'name'>): Promise<void> {
  const { leaseNamespace, leaseName } = leaseOf(space);
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${leaseNamespace}/leases`;
  await space.client.delete(`${leases}/${leaseName}`, {});
}

/** The HTCJobs of a namespace, as their user sees them. */
export class HtcJobs {
  readonly #client: KubeClient;
  readonly #namespace: string;

  constructor({ client, name }: Namespace) {
    this.#client = client;
    this.#namespace = name;
  }

  path(name?: string): string {
    const all = `/apis/htc.cern.ch/v1alpha1/namespaces/${this.#namespace}/htcjobs`;
    return name === undefined ? all : `${all}/${name}`;
  }

  /** @param source of the script, which `sh` runs */
  create(name: string, source: string, more: Partial<HtcJobSpec> = {}): Promise<HtcJobObject> {
    const script = { image: 'none', command: 'sh', source };
    return this.#client.create(this.path(), this.object(name, { name, script, runtime: 'none', ...more }));
  }

  object(name: string, spec: HtcJobSpec): object {
    return { apiVersion: 'htc.cern.ch/v1alpha1', kind: 'HTCJob', metadata: { name }, spec };
  }

  find(name: string): Promise<HtcJobObject | undefined> {
    return this.#client.find(this.path(name));
  }

  list(): Promise<readonly HtcJobObject[]> {
    return this.#client.list(this.path());
  }

  change(name: string, spec: Partial<HtcJobSpec>): Promise<HtcJobObject> {
    return this.#client.patch(this.path(name), { spec });
  }

  delete(name: string): Promise<void> {
    return this.#client.delete(this.path(name), {});
  }

  /** Takes away the finalizers, by which an operator that was killed would keep the namespace for ever, and its Lease. */
  async letGo(): Promise<void> {
    await removeLease({ client: this.#client, name: this.#namespace });
    for (const { metadata } of await this.list())
      await this.#client.raw(
        'PATCH',
        this.path(metadata.name),
        { metadata: { finalizers: null } },
        { 'content-type': 'application/merge-patch+json' },
      );
  }

  async until(
    name: string,
    what: string,
    condition: (status: HtcJobStatus) => boolean | undefined,
  ): Promise<HtcJobStatus> {
    let last: HtcJobStatus | undefined;
    return until(
      () => `${name} ${what}; its status: ${JSON.stringify(last)}`,
      async () => {
        last = (await this.find(name))?.status;
        return last !== undefined && condition(last) && last;
      },
    );
  }

  untilGone(name: string): Promise<unknown> {
    return until(`${name} is gone`, async () => (await this.find(name)) === undefined);
  }

  /** "REASON: MESSAGE" of the Events of one. */
  async events(name: string): Promise<readonly string[]> {
    const path = `/api/v1/namespaces/${this.#namespace}/events`;
    const events = await this.#client.list<KubeEvent>(path, '', `involvedObject.name=${name}`);
    return events.map(({ reason, message }) => `${reason}: ${message}`);
  }
}

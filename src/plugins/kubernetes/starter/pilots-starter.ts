import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isKubernetesError } from '../../../clients/kubernetes/errors.ts';
import { collectionPath, objectPath } from '../../../clients/kubernetes/paths.ts';
import type { Clock } from '../../../util/clock.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { K8sNamespace } from '../namespace.ts';
import { labelOf, starterLabel } from '../marks.ts';
import { starterName } from '../template/starter.ts';
import {
  deedFor,
  fileName,
  isOurs,
  othersUse,
  type StarterMap,
  userAnnotation,
  usersOf,
  versionAnnotation,
} from './standing.ts';

const kind = { group: '', version: 'v1', resource: 'configmaps' };
/** After so long it is made sure that the ConfigMap is still there, ms: a person may have removed it. */
const trusted = 60_000;
/** It is left alone for so long after a Job last needed it, ms. */
const keepUnused = 3_600_000;
/** How often another factory may be quicker. */
const turns = 5;

/** The script as it ships with thresher: beside the sources as beside what was built of them. */
export function readStarter(): { readonly script: string; readonly version: number } {
  const script = readFileSync(
    join(import.meta.dirname, '../../../../templates/kubernetes/pilots_starter.py'),
    'utf8',
  );
  const version = Number(/^VERSION = (\d+)$/m.exec(script)?.[1]);
  return { script, version };
}

/**
 * The ConfigMap that a template without a command starts its pilot from, under Harvester's name. All factories of a namespace
 * share it: each writes its name on it while it has Jobs, the newest script wins, and the last user removes it.
 */
export class PilotsStarter {
  readonly #namespace: K8sNamespace;
  readonly #clock: Clock;
  /** When a Job last needed it, monotonic ms; undefined: since this daemon began nothing has. */
  #used: number | undefined;
  /** When it was made or found, monotonic ms. */
  #seen = -Infinity;
  /** There is nothing of ours left in the namespace. */
  #left = false;
  /** One change at a time: a removal must not meet a creation. */
  #turn: Promise<void> = Promise.resolve();

  constructor(namespace: K8sNamespace, clock: Clock) {
    this.#namespace = namespace;
    this.#clock = clock;
  }

  /** Makes sure that it is there. @throws KubernetesError; ThresherError `k8s-starter` for one that holds no script */
  async ensure(signal: AbortSignal): Promise<void> {
    this.#used = this.#clock.monotonic();
    this.#left = false;
    if (this.#used - this.#seen < trusted) return;
    await this.#inTurn(() => this.#make(signal));
  }

  /** Keeps it while Jobs of this factory need it, and removes it some time after the last. @throws KubernetesError */
  async tend(signal: AbortSignal): Promise<void> {
    const { client, jobs, selector } = this.#namespace;
    if (this.#left) return;
    if (await client.exists(jobs, { labelSelector: `${selector},${starterLabel}`, signal })) {
      await this.ensure(signal);
      return;
    }
    // The use of it by an earlier daemon is unknown: counted from now.
    this.#used ??= this.#clock.monotonic();
    if (!this.#isUsed()) await this.#inTurn(() => this.#leave(signal));
  }

  /** Whether this daemon has given it to a Job. */
  get isUsed(): boolean {
    return this.#seen > -Infinity;
  }

  async #make(signal: AbortSignal): Promise<void> {
    const { client, name: namespace, factoryId } = this.#namespace;
    const own = { ...readStarter(), user: userAnnotation(labelOf(factoryId)) };
    for (let turn = 1; ; turn++) {
      const there = await this.#look(signal);
      const deed = deedFor(there, own);
      try {
        switch (deed.kind) {
          case 'nothing':
            break;
          case 'refuse': {
            const message = `the ConfigMap ${starterName} in ${namespace} is not thresher's and has no ${fileName}: remove it, or name another in pilotsStarterConfigMap`;
            throw new ThresherError('k8s-starter', message);
          }
          case 'create':
            await client.create(collectionPath(kind, namespace), this.#newMap(own), { signal });
            break;
          case 'change':
            await client.patch(this.#path, deed.patch, { kind: 'merge', signal });
        }
        this.#seen = this.#clock.monotonic();
        return;
      } catch (error) {
        const raced = isKubernetesError(
          error,
          ...(['kubernetes-already-exists', 'kubernetes-conflict', 'kubernetes-not-found'] as const),
        );
        if (!raced || turn >= turns) throw error;
      }
    }
  }

  /** Takes our name off it, and removes it where no other is on it. The next call looks at changes made meanwhile. */
  async #leave(signal: AbortSignal): Promise<void> {
    if (this.#isUsed()) return;
    const { client, factoryId } = this.#namespace;
    const user = userAnnotation(labelOf(factoryId));
    const there = await this.#look(signal).catch((error: unknown) => {
      // Without the right to look this factory never made one: most queues need none.
      if (isKubernetesError(error, 'kubernetes-forbidden') && !this.isUsed) return undefined;
      throw error;
    });
    if (there === undefined || !isOurs(there) || !usersOf(there).includes(user)) {
      this.#left = true;
      return;
    }
    const { uid, resourceVersion } = there.metadata ?? {};
    this.#seen = -Infinity;
    try {
      if (othersUse(there, user)) {
        const patch = { metadata: { resourceVersion, annotations: { [user]: null } } };
        await client.patch(this.#path, patch, { kind: 'merge', signal });
      } else {
        const version = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
        await client.delete(this.#path, { signal, ...version });
      }
      this.#left = true;
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-conflict', 'kubernetes-not-found')) throw error;
    }
  }

  async #look(signal: AbortSignal): Promise<StarterMap | undefined> {
    try {
      return await this.#namespace.client.get(this.#path, { signal });
    } catch (error) {
      if (isKubernetesError(error, 'kubernetes-not-found')) return undefined;
      throw error;
    }
  }

  #newMap({ script, version, user }: { script: string; version: number; user: string }) {
    const { name: namespace } = this.#namespace;
    return {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: starterName,
        namespace,
        labels: { [starterLabel]: starterName },
        annotations: { [versionAnnotation]: String(version), [user]: 'uses it' },
      },
      data: { [fileName]: script },
    };
  }

  get #path(): string {
    return objectPath(kind, this.#namespace.name, starterName);
  }

  #isUsed(): boolean {
    return this.#clock.monotonic() - (this.#used ?? -Infinity) < keepUnused;
  }

  #inTurn(change: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(change);
    // Each caller learns of its own failure, and the next one goes on.
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

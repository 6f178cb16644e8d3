import { collectionPath } from '../../clients/kubernetes/paths.ts';
import { Reflector, type ReflectorOptions } from '../../clients/kubernetes/reflector.ts';
import { htcJobs, isNamed } from '../../clients/htcjob/resource.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf, toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import { type Followed, kept } from './followed.ts';

export interface CollectionsParts {
  readonly client: ReflectorOptions<Followed>['client'];
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

export interface CollectionHandlers {
  /** All HTCJobs of a namespace, or of all (undefined), are asked for. */
  listing(namespace: string | undefined): void;
  /** All HTCJobs of a namespace, or of all (undefined): any other of it is gone. */
  replace(namespace: string | undefined, all: readonly Followed[]): void;
  upsert(object: Followed): void;
  remove(object: Followed): void;
  /** One more collection is known. */
  synced(): void;
}

/** Follows the HTCJobs of some namespaces, each by itself, or of all. */
export class Collections {
  readonly #namespaces: readonly (string | undefined)[];
  readonly #parts: CollectionsParts;
  readonly #synced = new Set<string | undefined>();
  /** Why a collection cannot be followed now. */
  readonly #troubles = new Map<string | undefined, string>();

  /** @param namespaces none: all */
  constructor(namespaces: readonly string[], parts: CollectionsParts) {
    this.#namespaces = namespaces.length === 0 ? [undefined] : [...new Set(namespaces)];
    this.#parts = parts;
  }

  get areKnown(): boolean {
    return this.#namespaces.every((namespace) => this.#synced.has(namespace));
  }

  /** Namespaces whose HTCJobs are not known, or not by now. The others go on. */
  get unsynced(): readonly Reason[] {
    return this.#namespaces.flatMap((namespace) => {
      const isKnown = this.#synced.has(namespace);
      const why = this.#troubles.get(namespace) ?? (isKnown ? undefined : 'they are being listed');
      if (why === undefined) return [];
      const where = namespace === undefined ? 'HTCJobs' : `HTCJobs of namespace ${namespace}`;
      return [{ code: 'htcjob-unsynced', message: `${where} cannot be followed: ${why}` }];
    });
  }

  /** Resolves when `signal` aborts. */
  async run(handlers: CollectionHandlers, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#namespaces.map((namespace) => this.#follow(namespace, handlers, signal)));
  }

  forget(): void {
    this.#synced.clear();
    this.#troubles.clear();
  }

  #follow(namespace: string | undefined, handlers: CollectionHandlers, signal: AbortSignal): Promise<void> {
    const { log } = this.#parts;
    const path = collectionPath(htcJobs, namespace);
    const reflector = new Reflector<Followed>({
      ...this.#parts,
      path,
      record: (object) => (isNamed(object) ? kept(object) : undefined),
      handlers: {
        listing: () => {
          handlers.listing(namespace);
        },
        replace: (all) => {
          handlers.replace(namespace, all);
          const isFirst = !this.#synced.has(namespace);
          this.#synced.add(namespace);
          if (isFirst) handlers.synced();
        },
        upsert: (object) => {
          handlers.upsert(object);
        },
        remove: (object) => {
          handlers.remove(object);
        },
        changed: ({ trouble }) => {
          const said = this.#troubles.get(namespace);
          if (trouble === undefined) this.#troubles.delete(namespace);
          else this.#troubles.set(namespace, messageOf(trouble));
          if (trouble !== undefined && messageOf(trouble) !== said)
            log.warn('HTCJobs cannot be followed', { path, ...toReason(trouble) });
        },
      },
    });
    return reflector.run(signal);
  }
}

import type { Payload, Request } from '../../plugins/contracts/index.ts';
import { attemptOf } from '../../clients/htcjob/numbers.ts';
import { type HtcJobSpec, jobCount } from '../../clients/htcjob/resource.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { HtcJobCluster } from './cluster.ts';
import type { JobMaker, JobToMake } from './job-maker.ts';
import { requirementsOf } from './needs.ts';
import type { Tracked } from './tracked.ts';

/** Most bytes of specs that requests hold in memory, of all namespaces that have any, about. */
const mostHeld = 64 * 1024 * 1024;

/**
 * The specs that requests hold until their jobs have workers. The requests of one HTCJob share its spec. Namespaces share the room, so that those of
 * one user, which no queue may ever take, hold back no other's; and one HTCJob of each namespace always has room.
 */
export class HeldSpecs {
  /** By uid. */
  readonly #held = new Map<string, { readonly namespace: string; readonly bytes: number }>();
  /** By namespace. */
  readonly #bytes = new Map<string, number>();

  /** @returns false where the HTCJob has to wait for its turn */
  take({ uid, meta: { namespace }, size }: Pick<Tracked, 'uid' | 'meta' | 'size'>): boolean {
    if (this.#held.has(uid)) return true;
    const before = this.#bytes.get(namespace) ?? 0;
    const namespaces = this.#bytes.size + (before === 0 ? 1 : 0);
    if (before > 0 && before + size > mostHeld / namespaces) return false;
    this.#held.set(uid, { namespace, bytes: size });
    this.#bytes.set(namespace, before + size);
    return true;
  }

  release(uid: string): void {
    const held = this.#held.get(uid);
    if (held === undefined) return;
    this.#held.delete(uid);
    const left = (this.#bytes.get(held.namespace) ?? 0) - held.bytes;
    if (left > 0) this.#bytes.set(held.namespace, left);
    else this.#bytes.delete(held.namespace);
  }
}

type Common = Pick<JobRequest, 'requirements' | 'groupId'>;

/** The request for one job. A queue looks at 10,000 requests at a time: the payloads of the others are not made before their turn. */
class JobRequest implements Request {
  readonly origin: OriginKey;
  readonly requirements: NonNullable<Request['requirements']>;
  readonly groupId?: string;
  readonly #make: () => Payload;
  #payload: Payload | undefined;

  constructor(origin: OriginKey, { requirements, groupId }: Common, make: () => Payload) {
    this.origin = origin;
    this.requirements = requirements;
    if (groupId !== undefined) this.groupId = groupId;
    this.#make = make;
  }

  /** The same object each time. @throws ThresherError for a payload that cannot be made */
  get payload(): Payload {
    this.#payload ??= this.#make();
    return this.#payload;
  }
}

interface JobsToAsk extends Pick<JobToMake, 'resource' | 'secrets'> {
  /** Indexes of the origins of the jobs. */
  readonly indexes: readonly number[];
  readonly maker: JobMaker;
}

/** @throws ThresherError for payloads that cannot be made */
function requestsFor({ resource, secrets, indexes, maker }: JobsToAsk): ReadonlyMap<number, Request> {
  const { uid } = resource.metadata;
  const payloadOf = (index: number) => {
    const { number } = attemptOf(index);
    return maker.payload({ resource, number, index, secrets });
  };
  const requirements = requirementsOf(resource.spec);
  // A group is a submission of its own, which costs as much as a thousand jobs of one.
  const common = jobCount(resource.spec) > 1 ? { requirements, groupId: uid } : { requirements };
  const [first] = indexes;
  // One payload that cannot be made stands for all of them.
  if (first !== undefined) payloadOf(first);
  return new Map(
    indexes.map((index) => [index, new JobRequest({ uid, index }, common, () => payloadOf(index))]),
  );
}

/** @throws ThresherError `htcjob-secret`, those of the server, and why a payload cannot be made */
export async function requestsOf(
  { meta, spec }: Pick<Tracked, 'meta'> & { readonly spec: HtcJobSpec },
  indexes: readonly number[],
  { cluster, maker }: { readonly cluster: HtcJobCluster; readonly maker: JobMaker },
  signal: AbortSignal,
): Promise<ReadonlyMap<number, Request>> {
  const secrets = await cluster.secretsOf(meta.namespace, spec.secrets ?? [], signal);
  return requestsFor({ resource: { metadata: meta, spec }, indexes, secrets, maker });
}

import type { Payload, Request } from '../../plugins/contracts/index.ts';
import { attemptOf } from '../../clients/htcjob/numbers.ts';
import { jobCount } from '../../clients/htcjob/resource.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { HtcJobCluster } from './cluster.ts';
import type { JobMaker, JobToMake } from './job-maker.ts';
import { requirementsOf } from './needs.ts';
import type { Tracked } from './tracked.ts';

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
  { meta, spec, source: known }: Pick<Tracked, 'meta' | 'spec' | 'source'>,
  indexes: readonly number[],
  { cluster, maker }: { readonly cluster: HtcJobCluster; readonly maker: JobMaker },
  signal: AbortSignal,
): Promise<ReadonlyMap<number, Request>> {
  const source = known ?? (await cluster.read(meta, signal))?.spec.script.source;
  if (source === undefined) return new Map();
  const secrets = await cluster.secretsOf(meta.namespace, spec.secrets ?? [], signal);
  const resource = { metadata: meta, spec: { ...spec, script: { ...spec.script, source } } };
  return requestsFor({ resource, indexes, secrets, maker });
}

import type { Payload, Request } from '../../plugins/contracts/index.ts';
import { attemptOf } from '../../clients/htcjob/numbers.ts';
import { jobCount } from '../../clients/htcjob/resource.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { JobMaker, JobToMake } from './job-maker.ts';
import { requirementsOf } from './needs.ts';

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

export interface JobsToAsk extends Pick<JobToMake, 'resource' | 'secrets'> {
  /** Of their origins. */
  readonly indexes: readonly number[];
  readonly maker: JobMaker;
}

/** @throws ThresherError for payloads that cannot be made */
export function requestsFor({ resource, secrets, indexes, maker }: JobsToAsk): ReadonlyMap<number, Request> {
  const { uid } = resource.metadata;
  const payloadOf = (index: number) => {
    const { number } = attemptOf(index);
    return maker.payload({ resource, number, index, secrets });
  };
  const requirements = requirementsOf(resource.spec);
  // A group is a submission of its own, which costs as much as a thousand jobs of one.
  const common = jobCount(resource.spec) > 1 ? { requirements, groupId: uid } : { requirements };
  const [first] = indexes;
  // What keeps one payload from being made keeps all of them.
  if (first !== undefined) payloadOf(first);
  return new Map(
    indexes.map((index) => [index, new JobRequest({ uid, index }, common, () => payloadOf(index))]),
  );
}

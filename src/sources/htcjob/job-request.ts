import type { Payload, Request } from '../../plugins/contracts/index.ts';
import type { OriginKey } from '../../worker/news.ts';

/** The request for one job. A queue looks at 10,000 requests at a time: the payloads of the others are not made before their turn. */
export class JobRequest implements Request {
  readonly origin: OriginKey;
  readonly requirements: NonNullable<Request['requirements']>;
  readonly groupId?: string;
  readonly #make: () => Payload;
  #payload: Payload | undefined;

  constructor(
    origin: OriginKey,
    { requirements, groupId }: Pick<JobRequest, 'requirements' | 'groupId'>,
    make: () => Payload,
  ) {
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

import type { Payload, Request } from '../../plugins/contracts/index.ts';
import { attemptOf } from '../../clients/htcjob/numbers.ts';
import { type HtcJobSpec, jobCount, wordsOf } from '../../clients/htcjob/resource.ts';
import { sizeOf } from '../../util/json.ts';
import type { OriginKey } from '../../worker/news.ts';
import type { HtcJobCluster } from './cluster.ts';
import { isLong } from './followed.ts';
import type { JobMaker, JobToMake } from './job-maker.ts';
import { requirementsOf } from './needs.ts';
import type { Tracked } from './tracked.ts';

type Common = Pick<JobRequest, 'requirements' | 'groupId'>;

/** The request for one job of a short HTCJob. A queue may have room for a few of thousands: the payloads of the others are not made before their turn. */
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

/** The jobs of one HTCJob as they can be made. */
export interface Jobs {
  /** By index of the origin. @throws ThresherError for one that cannot be made */
  readonly payloadOf: (index: number) => Payload;
  readonly resource: JobToMake['resource'];
  /** Of what they are made of, characters, about. */
  readonly size: number;
}

/** The requests for jobs. @param before those of them that there are stay */
export function requestsOf(
  { resource, payloadOf, size }: Jobs,
  indexes: readonly number[],
  before: ReadonlyMap<number, Request> = new Map(),
): ReadonlyMap<number, Request> {
  const { uid } = resource.metadata;
  const requirements = requirementsOf(resource.spec);
  // A group is a submission of its own, which costs as much as a thousand jobs of one.
  const common = jobCount(resource.spec) > 1 ? { requirements, groupId: uid } : { requirements };
  return new Map<number, Request>(
    indexes.map((index) => {
      const made = before.get(index);
      if (made !== undefined) return [index, made];
      const origin = { uid, index };
      // Those of a long HTCJob may wait for weeks, and take no memory meanwhile.
      if (isLong(size)) return [index, { origin, ...common, payloadFollows: true }];
      return [index, new JobRequest(origin, common, () => payloadOf(index))];
    }),
  );
}

/** Reads the Secrets of jobs. @throws ThresherError `htcjob-secret`, and those of the server */
export async function jobsOf(
  { meta, spec }: Pick<Tracked, 'meta'> & { readonly spec: HtcJobSpec },
  { cluster, maker }: { readonly cluster: HtcJobCluster; readonly maker: JobMaker },
  signal: AbortSignal,
): Promise<Jobs> {
  const secrets = await cluster.secretsOf(meta.namespace, spec.secrets ?? [], signal);
  const resource = { metadata: meta, spec };
  const payloadOf = (index: number) => {
    const { number } = attemptOf(index);
    return maker.payload({ resource, number, index, secrets });
  };
  // Each job has a list of the words of its own, which may take ten times as much as their text.
  return { payloadOf, resource, size: sizeOf([spec, ...secrets.values(), wordsOf(spec.script)]) };
}

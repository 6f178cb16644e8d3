import type { Static } from 'typebox';
import Type from '../../../util/type.ts';
import type { RetrievedPodData } from '../../../clients/interlink/wire.ts';
import { check } from '../../../util/schema.ts';
import type { PodIdentity } from '../identity.ts';

const Container = Type.Object({
  name: Type.String(),
  image: Type.String(),
  /** It has a readiness probe: it may be ready, and not any more. */
  isProbed: Type.Optional(Type.Literal(true)),
});

const Facts = Type.Object({
  workerId: Type.Union([Type.Integer(), Type.Null()]),
  status: Type.String(),
  native: Type.Union([Type.String(), Type.Null()]),
  exitCode: Type.Union([Type.Integer(), Type.Null()]),
  message: Type.Union([Type.String(), Type.Null()]),
  batchId: Type.Union([Type.String(), Type.Null()]),
  startTime: Type.Union([Type.Integer(), Type.Null()]),
  endTime: Type.Union([Type.Integer(), Type.Null()]),
});

/** All that thresher keeps of a Pod from its acceptance to its deletion: one file. */
const PodRecordSchema = Type.Object({
  version: Type.Literal(1),
  uid: Type.String(),
  name: Type.String(),
  namespace: Type.String(),
  containers: Type.Array(Container),
  initContainers: Type.Array(Container),
  /** ms UTC. */
  acceptedAt: Type.Integer(),
  /** Body of /create, with its Secrets: gone as soon as the job has its id. */
  data: Type.Optional(Type.Unknown()),
  /** Id of its job, once it has one: the Pod gets no other, whatever became of the database. */
  job: Type.Optional(Type.String()),
  /** Set once the job has ended. The row of its worker is deleted some time after. */
  end: Type.Optional(Facts),
  /** When the end was heard here, ms UTC: the times in it are by clocks of others. */
  heardAt: Type.Optional(Type.Integer()),
  /** The last report of the job, kept with its end. */
  report: Type.Optional(Type.Unknown()),
  /** /delete was asked for: what is left of the Pod is to be removed. */
  deleted: Type.Optional(Type.Boolean()),
});

export interface NamedImage {
  readonly name: string;
  readonly image: string;
  readonly isProbed?: true;
}

export interface PodRecord extends PodIdentity {
  readonly version: 1;
  readonly containers: readonly NamedImage[];
  readonly initContainers: readonly NamedImage[];
  readonly acceptedAt: number;
  readonly job?: string;
  readonly end?: Static<typeof Facts>;
  readonly heardAt?: number;
  readonly report?: unknown;
  readonly deleted?: boolean;
}

/** The file of a Pod. Bodies of Pods are large, and stay there: whoever needs one reads it. */
export interface PodFile {
  readonly record: PodRecord;
  readonly data?: RetrievedPodData;
}

/** @throws Error that says what is wrong in the file */
export function parseFile(text: string, uid: string): PodFile {
  const checked = check(PodRecordSchema, JSON.parse(text) as unknown);
  if (!checked.ok) throw new Error(checked.problems.map(({ message }) => message).join('; '));
  if (checked.value.uid !== uid) throw new Error(`it is of the Pod ${JSON.stringify(checked.value.uid)}`);
  const { data, ...record } = checked.value;
  // The body was checked before it was written.
  return { record, ...(data !== undefined && { data: data as RetrievedPodData }) };
}

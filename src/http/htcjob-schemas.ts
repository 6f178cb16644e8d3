import Type from '../util/type.ts';
import { LogQuery } from './schemas.ts';

export const HtcJobsQuery = Type.Object(
  {
    namespace: Type.Optional(
      Type.String({ minLength: 1, maxLength: 253, description: 'the name of a namespace, given once' }),
    ),
  },
  { additionalProperties: false },
);

const kubernetesName = (description: string) =>
  Type.String({ pattern: '^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$', description });

export const HtcJobParams = Type.Object({
  namespace: kubernetesName('the name of a namespace'),
  name: kubernetesName('the name of a HTCJob'),
});

export const HtcJobLogQuery = Type.Object(
  {
    index: Type.Integer({ minimum: 0, default: 0, description: 'the number of a job, a whole number' }),
    follow: Type.Boolean({ default: false, description: 'true or false' }),
    ...LogQuery.properties,
  },
  { additionalProperties: false },
);

const object = Type.Object({}, { additionalProperties: true });
/** As the API server of Kubernetes has it. */
const objectFields = { metadata: object, spec: object, status: Type.Optional(object) };
const asStored = {
  additionalProperties: true,
  description: 'A HTCJob, as the API server of Kubernetes has it, but for secrets, which are hidden.',
};
export const HtcJobsAnswer = Type.Array(Type.Object(objectFields, asStored), {
  description:
    'Scripts, commands and environments are left out, and other fields of more than 16,384 characters, each value counted as 8 more.',
});
const HtcJobWorker = Type.Object({
  job: Type.Integer({ description: 'Number of the job.' }),
  workerID: Type.Union([Type.Integer(), Type.Null()]),
  status: Type.String(),
  batchID: Type.Union([Type.String(), Type.Null()]),
  exitCode: Type.Union([Type.Integer(), Type.Null()]),
  diagMessage: Type.Union([Type.String(), Type.Null()]),
});
export const HtcJobAnswer = Type.Object({ ...objectFields, workers: Type.Array(HtcJobWorker) }, asStored);
export const HtcJobEventsAnswer = Type.Array(
  Type.Object({ time: Type.String(), type: Type.String(), reason: Type.String(), message: Type.String() }),
);

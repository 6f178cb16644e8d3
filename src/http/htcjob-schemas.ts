import Type from 'typebox';
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

/** As the API server has it. */
const HtcJobObject = Type.Object(
  {
    metadata: Type.Object({}, { additionalProperties: true }),
    spec: Type.Object({}, { additionalProperties: true }),
    status: Type.Optional(Type.Object({}, { additionalProperties: true })),
  },
  { additionalProperties: true, description: 'A HTCJob, as the API server of Kubernetes has it.' },
);
export const HtcJobsAnswer = Type.Array(HtcJobObject, { description: 'Scripts are left out.' });
export const HtcJobAnswer = Type.Intersect([
  HtcJobObject,
  Type.Object({
    workers: Type.Array(
      Type.Object({
        job: Type.Integer({ description: 'Number of the job.' }),
        workerID: Type.Union([Type.Integer(), Type.Null()]),
        status: Type.String(),
        batchID: Type.Union([Type.String(), Type.Null()]),
        exitCode: Type.Union([Type.Integer(), Type.Null()]),
        diagMessage: Type.Union([Type.String(), Type.Null()]),
      }),
    ),
  }),
]);
export const HtcJobEventsAnswer = Type.Array(
  Type.Object({ time: Type.String(), type: Type.String(), reason: Type.String(), message: Type.String() }),
);

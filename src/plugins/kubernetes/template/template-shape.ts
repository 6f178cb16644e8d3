import type { Static } from 'typebox';
import Type from '../../../util/type.ts';

const strings = Type.Optional(Type.Record(Type.String(), Type.String()));
const object = Type.Optional(Type.Record(Type.String(), Type.Unknown()));
const named = Type.Object({ name: Type.String({ minLength: 1 }) });

/** A value is looked at by template-checks.ts, which says it better. */
const EnvVar = Type.Object({
  name: Type.String({ minLength: 1 }),
  value: Type.Optional(Type.Unknown()),
  valueFrom: object,
});
const Quantities = Type.Optional(Type.Record(Type.String(), Type.Unknown()));
const Resources = Type.Optional(Type.Object({ requests: Quantities, limits: Quantities }));

const Container = Type.Object({
  name: Type.String({ minLength: 1 }),
  image: Type.Optional(Type.String({ minLength: 1 })),
  command: Type.Optional(Type.Array(Type.String())),
  args: Type.Optional(Type.Array(Type.String())),
  workingDir: Type.Optional(Type.String()),
  env: Type.Optional(Type.Array(EnvVar)),
  resources: Resources,
  volumeMounts: Type.Optional(
    Type.Array(
      Type.Object({ name: Type.String({ minLength: 1 }), mountPath: Type.String({ minLength: 1 }) }),
    ),
  ),
});

const Metadata = Type.Object({
  name: Type.Optional(Type.String()),
  namespace: Type.Optional(Type.String()),
  labels: strings,
  annotations: strings,
});

const PodSpec = Type.Object({
  containers: Type.Array(Container),
  initContainers: Type.Optional(Type.Array(Container)),
  restartPolicy: Type.Optional(Type.String()),
  volumes: Type.Optional(Type.Array(named)),
  affinity: object,
  priorityClassName: Type.Optional(Type.String()),
  schedulerName: Type.Optional(Type.String()),
  activeDeadlineSeconds: Type.Optional(Type.Integer({ minimum: 1 })),
  resources: Resources,
});

/** As much of a Job as a template is read and filled by; the API server knows the rest. Other keys stay as they are. */
export const JobShape = Type.Object({
  apiVersion: Type.Literal('batch/v1'),
  kind: Type.Literal('Job'),
  metadata: Type.Optional(Metadata),
  spec: Type.Object({
    parallelism: Type.Optional(Type.Integer({ minimum: 0 })),
    completions: Type.Optional(Type.Integer({ minimum: 0 })),
    backoffLimit: Type.Optional(Type.Integer({ minimum: 0 })),
    backoffLimitPerIndex: Type.Optional(Type.Integer({ minimum: 0 })),
    podReplacementPolicy: Type.Optional(Type.String()),
    managedBy: Type.Optional(Type.String()),
    podFailurePolicy: object,
    activeDeadlineSeconds: Type.Optional(Type.Integer({ minimum: 1 })),
    ttlSecondsAfterFinished: Type.Optional(Type.Integer({ minimum: 0 })),
    template: Type.Object({ metadata: Type.Optional(Metadata), spec: PodSpec }),
  }),
});
export type JobShape = Static<typeof JobShape>;
export type PodSpecShape = JobShape['spec']['template']['spec'];
export type ContainerShape = PodSpecShape['containers'][number];

/** A variable of a container as it is sent. */
export interface EnvEntry {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: Readonly<Record<string, unknown>>;
}

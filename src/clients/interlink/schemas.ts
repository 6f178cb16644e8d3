/** Checks the bodies that interLink sends. A schema names only the parts that thresher reads, and lets all others through. */
import type { TSchema } from 'typebox';
import Type from '../../util/type.ts';
import { checkFirst } from '../../util/schema.ts';
import type { LogStruct, Pod, RetrievedPodData } from './wire.ts';

/** A body as it was meant, or one sentence for each mistake. */
export type Read<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: readonly string[] };

/** Go writes an empty pointer, list or map as null, or leaves it out. */
const maybe = (schema: TSchema) => Type.Optional(Type.Unsafe<unknown>({ ...schema, nullable: true }));
const list = (schema: TSchema, most = {}) => maybe(Type.Array(schema, most));
/** Of one kind in one Pod: a Pod that a cluster could run has some dozens. */
const mostContainers = { maxItems: 1000 };
const texts = maybe(Type.Record(Type.String(), Type.String()));
const text = Type.Optional(Type.String());
const whole = maybe(Type.Integer());
const yes = maybe(Type.Boolean());
const textOrNumber = (what: string) =>
  Type.Unsafe<unknown>({ type: ['string', 'number'], description: what });
const quantities = maybe(Type.Record(Type.String(), textOrNumber('a quantity, such as 500m or 1.5Gi')));
const port = textOrNumber('a number or the name of a port');
const anything = Type.Optional(Type.Unknown());

const Meta = Type.Object({ name: text, namespace: text, uid: text, labels: texts, annotations: texts });

const ActionParts = {
  exec: maybe(Type.Object({ command: list(Type.String()) })),
  httpGet: maybe(
    Type.Object({
      path: text,
      port,
      host: text,
      scheme: text,
      httpHeaders: list(Type.Object({ name: Type.String(), value: Type.String() })),
    }),
  ),
  tcpSocket: maybe(Type.Object({ port, host: text })),
  grpc: anything,
  sleep: maybe(Type.Object({ seconds: Type.Integer() })),
};
const Hook = maybe(Type.Object(ActionParts));
const Probe = maybe(
  Type.Object({
    ...ActionParts,
    initialDelaySeconds: whole,
    timeoutSeconds: whole,
    periodSeconds: whole,
    successThreshold: whole,
    failureThreshold: whole,
  }),
);

const Security = maybe(
  Type.Object({
    runAsUser: whole,
    runAsGroup: whole,
    runAsNonRoot: yes,
    fsGroup: whole,
    supplementalGroups: list(Type.Integer()),
    privileged: yes,
    allowPrivilegeEscalation: yes,
    readOnlyRootFilesystem: yes,
    capabilities: maybe(Type.Object({ add: list(Type.String()), drop: list(Type.String()) })),
  }),
);

const ContainerSchema = Type.Object({
  name: Type.String(),
  image: text,
  imagePullPolicy: text,
  command: list(Type.String()),
  args: list(Type.String()),
  workingDir: text,
  env: list(Type.Object({ name: Type.String(), value: text })),
  envFrom: list(Type.Unknown()),
  ports: list(Type.Object({ name: text, containerPort: Type.Integer() })),
  resources: maybe(Type.Object({ requests: quantities, limits: quantities })),
  volumeMounts: list(
    Type.Object({
      name: Type.String(),
      mountPath: Type.String(),
      readOnly: yes,
      subPath: text,
      subPathExpr: text,
    }),
  ),
  livenessProbe: Probe,
  readinessProbe: Probe,
  startupProbe: Probe,
  lifecycle: maybe(Type.Object({ postStart: Hook, preStop: Hook })),
  securityContext: Security,
  restartPolicy: text,
  terminationMessagePath: text,
  terminationMessagePolicy: text,
});

const items = list(Type.Object({ key: Type.String(), path: Type.String(), mode: whole }));

const VolumeSchema = Type.Object({
  name: Type.String(),
  configMap: maybe(Type.Object({ name: text, items, defaultMode: whole, optional: yes })),
  secret: maybe(Type.Object({ secretName: text, items, defaultMode: whole, optional: yes })),
  projected: maybe(
    Type.Object({ sources: list(Type.Record(Type.String(), Type.Unknown())), defaultMode: whole }),
  ),
  downwardAPI: maybe(Type.Object({ defaultMode: whole })),
  emptyDir: maybe(Type.Object({ medium: text, sizeLimit: anything })),
  hostPath: maybe(Type.Object({ path: Type.String(), type: text })),
  persistentVolumeClaim: maybe(Type.Object({ claimName: Type.String() })),
});

export const PodSchema = Type.Object({
  metadata: Meta,
  spec: Type.Object({
    containers: Type.Array(ContainerSchema, { minItems: 1, ...mostContainers }),
    initContainers: list(ContainerSchema, mostContainers),
    volumes: list(VolumeSchema),
    restartPolicy: text,
    terminationGracePeriodSeconds: whole,
    activeDeadlineSeconds: whole,
    securityContext: Security,
    imagePullSecrets: list(Type.Object({ name: text })),
  }),
});

const MapSchema = Type.Object({ metadata: maybe(Meta), type: text, data: texts, binaryData: texts });

export const RetrievedPodDataSchema = Type.Object({
  pod: PodSchema,
  container: list(
    Type.Object({
      name: Type.String(),
      configMaps: list(MapSchema),
      projectedvolumemaps: list(MapSchema),
      secrets: list(MapSchema),
      emptyDirs: list(Type.String()),
    }),
  ),
  jobConfig: anything,
  jobScript: text,
});

/**
 * A Pod in /status and /delete: only its identity counts, so a Pod whose spec thresher would refuse can be removed. Nothing else of the
 * Pod is read at all: its user may give it a hundred thousand labels, and it is asked for every few seconds.
 */
export const NamedPodSchema = Type.Object({
  metadata: Type.Object({
    name: text,
    namespace: text,
    uid: text,
    annotations: maybe(
      Type.Object({
        JobID: text,
        'interlink.eu/disable-offload-containers': text,
        'interlink.eu/disable-offload-init-containers': text,
      }),
    ),
  }),
  spec: maybe(
    Type.Object({
      containers: list(Type.Object({ name: Type.String(), image: text })),
      initContainers: list(Type.Object({ name: Type.String(), image: text })),
    }),
  ),
});

/** Made once: a schema that is made anew for each request would be compiled for each. */
export const NamedPodsSchema = Type.Array(NamedPodSchema);

export const LogStructSchema = Type.Object({
  Namespace: Type.String(),
  PodUID: Type.String(),
  PodName: Type.String(),
  ContainerName: Type.String(),
  Opts: Type.Object({
    Tail: Type.Integer({ default: 0 }),
    Bytes: Type.Integer({ default: 0 }),
    Timestamps: Type.Boolean({ default: false }),
    Follow: Type.Boolean({ default: false }),
    Previous: Type.Boolean({ default: false }),
    SinceSeconds: Type.Integer({ default: 0 }),
    SinceTime: Type.String({ default: '0001-01-01T00:00:00Z' }),
  }),
});

/** The parts of a Pod that tell who it is and which containers it lists. */
export interface NamedPod {
  readonly metadata: Pod['metadata'];
  readonly spec?: {
    readonly containers?: readonly { readonly name: string; readonly image?: string }[] | null;
    readonly initContainers?: readonly { readonly name: string; readonly image?: string }[] | null;
  } | null;
}

/** Body of POST /create. */
export function readCreate(body: unknown): Read<RetrievedPodData> {
  if (Array.isArray(body)) return { ok: false, problems: ['the body is a list; /create takes one object'] };
  return read<RetrievedPodData>(RetrievedPodDataSchema, body);
}

/** Body of POST /delete. */
export function readPod(body: unknown): Read<NamedPod> {
  return read<NamedPod>(NamedPodSchema, body);
}

/** Body of /status. No body, null and `[]` are the ping. */
export function readPods(body: unknown): Read<readonly NamedPod[]> {
  return read<readonly NamedPod[]>(NamedPodsSchema, body ?? []);
}

/** Body of /getLogs. */
export function readLogRequest(body: unknown): Read<LogStruct> {
  return read<LogStruct>(LogStructSchema, body);
}

function read<T>(schema: TSchema, body: unknown): Read<T> {
  const checked = checkFirst(schema, body);
  // The schemas say of each part that wire.ts names what wire.ts says of it.
  if (checked.ok) return { ok: true, value: checked.value as T };
  const sentences = checked.problems.map(({ pointer, message }) => `${pointer || 'the body'}: ${message}`);
  return { ok: false, problems: [...new Set(sentences)] };
}

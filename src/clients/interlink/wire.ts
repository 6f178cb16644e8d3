/**
 * The bodies that interLink sends to a plugin, and those that it takes, by their names on the wire. interLink's published OpenAPI
 * file has other names; these are the tags of its Go structs. Go writes an empty list as null.
 * Source: pkg/interlink/types.go of interlink-hq/interLink, 0.6.2; `k8s.io/api/core/v1`.
 */
import type { ObjectMeta } from '../kubernetes/objects.ts';

export type WireList<T> = readonly T[] | null;
export type WireMap = Readonly<Record<string, string>> | null;

/** Body of POST /create. */
export interface RetrievedPodData {
  readonly pod: Pod;
  /** Init containers come first. */
  readonly container?: WireList<RetrievedContainer>;
  readonly jobConfig?: unknown;
  /** A whole job script, which a script builder of interLink wrote. */
  readonly jobScript?: string;
}

/** The objects that the volumes of one container need. */
export interface RetrievedContainer {
  readonly name: string;
  readonly configMaps?: WireList<ConfigMap>;
  /** One for each projected volume, by the volume's name: its keys are paths, its values the texts of the files. */
  readonly projectedvolumemaps?: WireList<ConfigMap>;
  readonly secrets?: WireList<Secret>;
  readonly emptyDirs?: WireList<string>;
}

export interface ConfigMap {
  readonly metadata?: ObjectMeta;
  /** Plain texts. */
  readonly data?: WireMap;
  /** Base64. */
  readonly binaryData?: WireMap;
}

export interface Secret {
  readonly metadata?: ObjectMeta;
  readonly type?: string;
  /** Base64. */
  readonly data?: WireMap;
}

/** Answer to POST /create. */
export interface CreateStruct {
  readonly PodUID: string;
  readonly PodJID: string;
}

/** One element of the answer to /status. */
export interface PodStatus {
  readonly name: string;
  readonly UID: string;
  readonly namespace: string;
  readonly JID: string;
  readonly containers: readonly ContainerStatus[];
  readonly initContainers: readonly ContainerStatus[];
}

export interface ContainerStatus {
  readonly name: string;
  readonly state: ContainerState;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly started?: boolean;
}

/** Exactly one of the three. */
export interface ContainerState {
  readonly waiting?: { readonly reason: string; readonly message?: string };
  readonly running?: { readonly startedAt: string };
  readonly terminated?: TerminatedState;
}

/** interLink takes a missing `exitCode` for 0, and so for a success. */
export interface TerminatedState {
  readonly exitCode: number;
  readonly signal?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
}

/** Body of GET /getLogs. */
export interface LogStruct {
  readonly Namespace: string;
  readonly PodUID: string;
  readonly PodName: string;
  readonly ContainerName: string;
  readonly Opts: LogOpts;
}

export interface LogOpts {
  /** Lines; 0: all. */
  readonly Tail: number;
  /** Go calls it LimitBytes; 0: no limit. */
  readonly Bytes: number;
  readonly Timestamps: boolean;
  readonly Follow: boolean;
  readonly Previous: boolean;
  readonly SinceSeconds: number;
  /** RFC 3339; "0001-01-01T00:00:00Z": not set. */
  readonly SinceTime: string;
}

/** Answer to the ping, a /status with an empty list. */
export interface PingResponse {
  readonly status?: string;
  /** For people: interLink does not read it. */
  readonly message?: string;
  /** Quantities. A node with `cpu: "0"` is drained: leave out the unknown. */
  readonly resources?: {
    readonly cpu?: string;
    readonly memory?: string;
    readonly pods?: string;
    /** `available` is a text: Go refuses the whole answer for a number, and takes nothing of it. */
    readonly accelerators?: readonly { readonly resourceType: string; readonly available: string }[];
  };
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
}

/** The parts of a Pod that thresher reads. */
export interface Pod {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: WireList<Container>;
  readonly volumes?: WireList<Volume>;
  readonly restartPolicy?: string;
  /** Seconds. */
  readonly terminationGracePeriodSeconds?: number | null;
  /** Seconds. */
  readonly activeDeadlineSeconds?: number | null;
  readonly securityContext?: SecurityContext | null;
  readonly imagePullSecrets?: WireList<{ readonly name?: string }>;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly imagePullPolicy?: string;
  readonly command?: WireList<string>;
  readonly args?: WireList<string>;
  readonly workingDir?: string;
  /** interLink has resolved `valueFrom` and `envFrom`; Go leaves out an empty value. */
  readonly env?: WireList<{ readonly name: string; readonly value?: string; readonly valueFrom?: unknown }>;
  readonly envFrom?: WireList<unknown>;
  readonly ports?: WireList<{ readonly name?: string; readonly containerPort: number }>;
  readonly resources?: Resources | null;
  readonly volumeMounts?: WireList<VolumeMount>;
  readonly livenessProbe?: Probe | null;
  readonly readinessProbe?: Probe | null;
  readonly startupProbe?: Probe | null;
  readonly lifecycle?: { readonly postStart?: Action | null; readonly preStop?: Action | null } | null;
  readonly securityContext?: SecurityContext | null;
  readonly restartPolicy?: string;
  readonly terminationMessagePath?: string;
  readonly terminationMessagePolicy?: string;
}

export type Quantity = string | number;

export interface Resources {
  readonly requests?: Readonly<Record<string, Quantity>> | null;
  readonly limits?: Readonly<Record<string, Quantity>> | null;
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly subPath?: string;
  readonly subPathExpr?: string;
}

/** The work of a probe or a hook. */
export interface Action {
  readonly exec?: { readonly command?: WireList<string> } | null;
  readonly httpGet?: HttpGet | null;
  readonly tcpSocket?: { readonly port: number | string; readonly host?: string } | null;
  readonly grpc?: unknown;
  readonly sleep?: { readonly seconds: number } | null;
}

export interface HttpGet {
  readonly path?: string;
  readonly port: number | string;
  readonly host?: string;
  readonly scheme?: string;
  readonly httpHeaders?: WireList<{ readonly name: string; readonly value: string }>;
}

/** Times in seconds. */
export interface Probe extends Action {
  readonly initialDelaySeconds?: number;
  readonly timeoutSeconds?: number;
  readonly periodSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
}

export interface SecurityContext {
  readonly runAsUser?: number | null;
  readonly runAsGroup?: number | null;
  readonly runAsNonRoot?: boolean | null;
  readonly fsGroup?: number | null;
  readonly supplementalGroups?: WireList<number>;
  readonly privileged?: boolean | null;
  readonly allowPrivilegeEscalation?: boolean | null;
  readonly readOnlyRootFilesystem?: boolean | null;
  readonly capabilities?: { readonly add?: WireList<string>; readonly drop?: WireList<string> } | null;
  readonly [other: string]: unknown;
}

export interface KeyToPath {
  readonly key: string;
  readonly path: string;
  /** Permission bits, decimal in JSON. */
  readonly mode?: number | null;
}

/** A volume has exactly one source beside its name. */
export interface Volume {
  readonly name: string;
  readonly configMap?: {
    readonly name?: string;
    readonly items?: WireList<KeyToPath>;
    readonly defaultMode?: number | null;
    readonly optional?: boolean | null;
  } | null;
  readonly secret?: {
    readonly secretName?: string;
    readonly items?: WireList<KeyToPath>;
    readonly defaultMode?: number | null;
    readonly optional?: boolean | null;
  } | null;
  readonly projected?: {
    readonly sources?: WireList<Readonly<Record<string, unknown>>>;
    readonly defaultMode?: number | null;
  } | null;
  readonly downwardAPI?: { readonly defaultMode?: number | null } | null;
  readonly emptyDir?: { readonly medium?: string; readonly sizeLimit?: Quantity | null } | null;
  readonly hostPath?: { readonly path: string; readonly type?: string | null } | null;
  readonly persistentVolumeClaim?: { readonly claimName: string } | null;
  readonly [other: string]: unknown;
}

/**
 * The fields that thresher reads of Jobs and Pods, as the API server sends them: times are RFC 3339, and everything may
 * be missing, or `null` where a server writes that.
 */
type Maybe<T> = T | null;

export interface ObjectMeta {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly creationTimestamp?: Maybe<string>;
  /** When it will be gone, its grace included. */
  readonly deletionTimestamp?: Maybe<string>;
  readonly finalizers?: Maybe<readonly string[]>;
  readonly labels?: Maybe<Readonly<Record<string, Maybe<string>>>>;
  readonly annotations?: Maybe<Readonly<Record<string, Maybe<string>>>>;
  readonly ownerReferences?: Maybe<readonly Maybe<OwnerReference>[]>;
}

/** One object that has another; the one with `controller` made it, or has taken it over. */
export interface OwnerReference {
  readonly kind?: Maybe<string>;
  readonly name?: Maybe<string>;
  readonly uid?: Maybe<string>;
  readonly controller?: Maybe<boolean>;
}

/** A condition of a Job or a Pod. It holds only while `status` is "True". */
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: Maybe<string>;
  readonly message?: Maybe<string>;
  readonly lastTransitionTime?: Maybe<string>;
}

export interface Job {
  readonly metadata?: ObjectMeta;
  readonly spec?: {
    readonly backoffLimit?: Maybe<number>;
    readonly backoffLimitPerIndex?: Maybe<number>;
    readonly completions?: Maybe<number>;
    readonly suspend?: Maybe<boolean>;
    readonly podFailurePolicy?: unknown;
    /** The controller that has the Job, where it is not Kubernetes' own. */
    readonly managedBy?: Maybe<string>;
  };
  readonly status?: {
    readonly conditions?: Maybe<readonly Condition[]>;
    readonly startTime?: Maybe<string>;
    readonly completionTime?: Maybe<string>;
    readonly active?: Maybe<number>;
    /** Of these, Pods that are ready. */
    readonly ready?: Maybe<number>;
    readonly succeeded?: Maybe<number>;
    readonly failed?: Maybe<number>;
    readonly terminating?: Maybe<number>;
  };
}

export interface WaitingState {
  readonly reason?: Maybe<string>;
  readonly message?: Maybe<string>;
}

export interface RunningState {
  readonly startedAt?: Maybe<string>;
}

export interface TerminatedState {
  readonly exitCode?: Maybe<number>;
  readonly signal?: Maybe<number>;
  readonly reason?: Maybe<string>;
  readonly message?: Maybe<string>;
  readonly startedAt?: Maybe<string>;
  readonly finishedAt?: Maybe<string>;
}

export interface ContainerState {
  readonly waiting?: Maybe<WaitingState>;
  readonly running?: Maybe<RunningState>;
  readonly terminated?: Maybe<TerminatedState>;
}

export interface ContainerStatus {
  readonly name: string;
  readonly restartCount?: Maybe<number>;
  readonly state?: Maybe<ContainerState>;
  readonly lastState?: Maybe<ContainerState>;
}

/** The part of a container's specification that tells its role. */
export interface ContainerSpec {
  readonly name: string;
  /** "Always" makes an init container a sidecar. */
  readonly restartPolicy?: Maybe<string>;
}

export interface Pod {
  readonly metadata?: ObjectMeta;
  readonly spec?: {
    readonly nodeName?: Maybe<string>;
    readonly restartPolicy?: Maybe<string>;
    readonly terminationGracePeriodSeconds?: Maybe<number>;
    readonly tolerations?: Maybe<readonly { readonly key?: Maybe<string> }[]>;
    readonly containers?: Maybe<readonly ContainerSpec[]>;
    readonly initContainers?: Maybe<readonly ContainerSpec[]>;
  };
  readonly status?: {
    readonly phase?: Maybe<string>;
    readonly reason?: Maybe<string>;
    readonly message?: Maybe<string>;
    readonly startTime?: Maybe<string>;
    readonly conditions?: Maybe<readonly Condition[]>;
    readonly containerStatuses?: Maybe<readonly ContainerStatus[]>;
    readonly initContainerStatuses?: Maybe<readonly ContainerStatus[]>;
  };
}

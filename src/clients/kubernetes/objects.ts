/** The parts of the API's objects that the client itself reads. It passes all others on unchanged. */
export interface ObjectMeta {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  /** Absent, null or empty: nobody deleted it. */
  readonly deletionTimestamp?: string | null;
}

export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: ObjectMeta;
}

/** The elements of a list of an object, which may be missing or null, or have nulls in it: one odd object must not throw for all others. */
export function presentIn<T>(list: readonly T[] | null | undefined): readonly NonNullable<T>[] {
  if (!Array.isArray(list)) return [];
  return (list as readonly T[]).filter((one) => one !== null && one !== undefined);
}

/** The form in which the API refuses. Source: `metav1.Status`. */
export interface ApiStatus {
  readonly kind?: string;
  readonly message?: string;
  readonly reason?: string;
  /** HTTP status. */
  readonly code?: number;
  readonly details?: {
    readonly name?: string;
    readonly kind?: string;
    readonly retryAfterSeconds?: number;
    readonly causes?: readonly {
      readonly field?: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

/** A page of a list. */
export interface ListPage {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly KubernetesObject[] | null;
}

/** One change that a watch reports. A bookmark carries a version and nothing else. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubernetesObject;
}

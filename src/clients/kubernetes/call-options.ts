export interface CallOptions {
  readonly signal: AbortSignal;
  /** Longest wait for an answer, ms; default: the client's. */
  readonly timeout?: number;
  /** A call that is not worth a second try: a 429 of the server then delays no other caller. */
  readonly once?: boolean;
}

export interface AnswerOptions extends CallOptions {
  /** The answer is to have `metadata` alone: a Job is 5 kB, and most of it was just sent. */
  readonly metadataOnly?: boolean;
}

export interface Selection {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ListOptions extends Selection, AnswerOptions {
  /** Objects per page. Default 250: while one is read, the next is on its way. Pages that are too large are asked for again with fewer. */
  readonly limit?: number;
}

export interface Listed<T> {
  readonly items: T[];
  /** From which a watch goes on. */
  readonly resourceVersion: string;
}

export interface DeleteOptions extends CallOptions {
  /** Another object of the same name is left alone: that is a `kubernetes-conflict`. */
  readonly uid?: string;
  /** One that changed since this version is left alone, in the same way. */
  readonly resourceVersion?: string;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  readonly gracePeriodSeconds?: number;
}

export interface PatchOptions extends AnswerOptions {
  readonly kind: 'apply' | 'merge' | 'strategic' | 'json';
  /** Owner of the fields; `apply` requires it. */
  readonly fieldManager?: string;
  /** Takes fields from other managers. */
  readonly force?: boolean;
  /** The server judges strictly, and keeps nothing. */
  readonly dryRun?: boolean;
}

export interface LogOptions extends CallOptions {
  readonly container?: string;
  readonly follow?: boolean;
  readonly tailLines?: number;
  /** ms UTC; the server takes whole seconds. */
  readonly sinceTime?: number;
  /** Each line begins with its time and a space. */
  readonly timestamps?: boolean;
  /** The log of the container before its restart. */
  readonly previous?: boolean;
  readonly limitBytes?: number;
}

export interface WatchOptions extends Selection, CallOptions {
  readonly resourceVersion: string;
  /** After so many seconds the server ends it. */
  readonly timeoutSeconds: number;
  /** Longest time without a byte, ms. The server sends a bookmark a minute. */
  readonly silence: number;
  /** For Jobs: the template of their Pods, which is most of a Job, may be missing. */
  readonly noTemplate?: boolean | undefined;
}

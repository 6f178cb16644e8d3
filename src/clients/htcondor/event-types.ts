import type { JobId } from './classad.ts';

/** Attributes of every event of a job. */
export interface EventHead extends JobId {
  /** ms UTC; undefined where the log has a time that cannot be read. */
  readonly time: number | undefined;
}

export type EndOfJob =
  | { readonly exitCode: number; readonly signal?: undefined }
  | { readonly signal: number; readonly exitCode?: undefined };

/** An event as it stands in a log; times are the log's own. */
export type JobEvent = EventHead &
  (
    | { readonly kind: 'submit'; readonly host?: string; readonly notes?: string }
    | { readonly kind: 'execute'; readonly host?: string; readonly slot?: string }
    | {
        readonly kind: 'evicted';
        readonly requeued: boolean;
        readonly reason?: string;
        readonly end?: EndOfJob;
      }
    /** `end` is undefined where the log does not say how: never a success. */
    | { readonly kind: 'terminated'; readonly end: EndOfJob | undefined }
    | { readonly kind: 'aborted'; readonly reason?: string }
    | {
        readonly kind: 'held';
        readonly reason?: string;
        /** `HoldReasonCode`: 1 by a user, 13 input files missing ... */
        readonly code?: number;
        readonly subcode?: number;
      }
    | { readonly kind: 'released'; readonly reason?: string }
    | { readonly kind: 'suspended'; readonly processes?: number }
    | { readonly kind: 'unsuspended' }
    | { readonly kind: 'disconnected'; readonly reason?: string; readonly slot?: string }
    | { readonly kind: 'reconnected'; readonly slot?: string }
    | { readonly kind: 'reconnect-failed'; readonly reason?: string; readonly slot?: string }
    | {
        readonly kind: 'image-size';
        /** KB */
        readonly size: number | undefined;
        /** MB */
        readonly memory?: number;
        /** KB */
        readonly resident?: number;
      }
    | { readonly kind: 'shadow-exception'; readonly message?: string }
    | { readonly kind: 'executable-error' }
    | { readonly kind: 'file-transfer'; readonly phase?: number }
    | { readonly kind: 'grid-submit'; readonly resource?: string; readonly gridJob?: string }
    /** One that says nothing of a job's state. */
    | { readonly kind: 'other'; readonly number: number }
  );

/** An event as the attributes that its ClassAd has, which are the same in JSON and in XML. */
export type EventAd = Readonly<Record<string, unknown>>;

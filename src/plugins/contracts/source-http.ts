/** A request that reached the door of a source: below `/sources/KIND/` of the daemon's HTTP server. */
export interface SourceHttpRequest {
  readonly method: string;
  /** Below `/sources/KIND/`, without the query: `cloudevents`. */
  readonly path: string;
  /** Names in lower case. The values of a name that was sent twice are joined, as Node joins them. */
  readonly headers: Readonly<Record<string, string>>;
  /** At most `longestSourceBody` bytes: longer ones are refused before. */
  readonly body: Uint8Array;
}

export interface SourceHttpAnswer {
  readonly status: number;
  /** `application/json` where it says no type. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Bytes. */
export const longestSourceBody = 64 * 1024;

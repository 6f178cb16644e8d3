import type { ErrorCode } from '../codes/codes.ts';
import type { Reason } from './reason.ts';

/** An error an operator can act on. `message` is one whole sentence; `facts` are shown beside it in logs. */
export class ThresherError extends Error {
  readonly code: ErrorCode;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, facts: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ThresherError';
    this.code = code;
    this.facts = facts;
  }
}

/** The sentence of whatever was thrown, for a reason or a log line. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Makes anything thrown a reason, or a worker's error. */
export function toReason(error: unknown): Reason {
  return { code: error instanceof ThresherError ? error.code : 'plugin-failed', message: messageOf(error) };
}

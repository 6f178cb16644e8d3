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

let shown = (words: string): string => words;

/** From now on what others throw is shown as this makes it: `own-secrets.ts`, which knows what is secret, cuts and masks it. */
export function showOthersBy(show: (words: string) => string): void {
  shown = show;
}

/** The sentence of whatever was thrown, for a reason or a log line. What others throw may hold words from anywhere. */
export function messageOf(error: unknown): string {
  if (error instanceof ThresherError) return error.message;
  return shown(error instanceof Error ? error.message : String(error));
}

/** Makes anything thrown a reason, or a worker's error. */
export function toReason(error: unknown): Reason {
  return { code: error instanceof ThresherError ? error.code : 'plugin-failed', message: messageOf(error) };
}

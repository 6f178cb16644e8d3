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
  const words = error instanceof Error ? error.message : String(error);
  return shown(words.replace(nodesHint, ''));
}

/** What Node 24 adds to the failure of a certificate: an option that its own command line has, and no setting of ours. */
const nodesHint = '; if the root CA is installed locally, try running Node.js with --use-system-ca';

/** Whether a failed connection met a certificate that no known authority has signed. By Node's codes, which are OpenSSL's. */
export function isOfUnknownAuthority(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ofUnknownAuthority.has(String(error.code));
}

const ofUnknownAuthority: ReadonlySet<string> = new Set([
  ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'],
  ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'],
]);

/** Makes anything thrown a reason, or a worker's error. */
export function toReason(error: unknown): Reason {
  return { code: error instanceof ThresherError ? error.code : 'plugin-failed', message: messageOf(error) };
}

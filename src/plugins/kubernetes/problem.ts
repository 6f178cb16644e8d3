import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';

/** Whatever was thrown, as the agents want it. */
export function problemOf(error: unknown): Reason {
  if (error instanceof ThresherError) return { code: error.code, message: error.message };
  return { code: 'plugin-failed', message: messageOf(error) };
}

import { ThresherError } from '../worker/errors.ts';

/**
 * Refuses to act for a factory that another daemon may have by now. @param mayAct whether the lease holds; without one nobody else
 * can have the factory
 * @throws ThresherError `lease-expired`
 */
export function requireLease(mayAct: (() => boolean) | undefined): void {
  if (mayAct?.() ?? true) return;
  throw new ThresherError(
    'lease-expired',
    'the lease on the factory ran out, since the database did not answer: another daemon may have it by now',
  );
}

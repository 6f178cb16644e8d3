import { isoTime } from './clock.ts';

/** The times that a credential says, ms UTC. */
export interface Validity {
  /** undefined: it has no end. */
  readonly expiresAt?: number | undefined;
  readonly notBefore?: number | undefined;
  /** When it was made. It bounds nothing: an issuer whose clock is wrong makes good credentials. */
  readonly issuedAt?: number | undefined;
}

/** The clock of whoever makes or takes credentials and that of this machine may differ so much, ms. */
const clockSkew = 300_000;

/** Why a credential cannot be used, to be said behind its name; undefined: it can be. @param now ms UTC */
export function whyUnusable(
  { expiresAt = Infinity, notBefore = -Infinity }: Validity,
  now: number,
): string | undefined {
  if (expiresAt <= now) return `ended at ${isoTime(expiresAt)}`;
  if (notBefore > now + clockSkew) return `is not valid before ${isoTime(notBefore)}`;
  if (notBefore >= expiresAt) return `ends at ${isoTime(expiresAt)}, before it begins`;
  return undefined;
}

/**
 * When the life of a credential began, ms UTC; undefined: it does not say, or what it says cannot be. A time that is far ahead would make it young for as long.
 * @param now ms UTC
 */
export function beginningOf(
  { expiresAt = Infinity, notBefore, issuedAt }: Validity,
  now: number,
): number | undefined {
  const said = [notBefore, issuedAt].filter((at) => at !== undefined);
  // Some issuers write 0 where they mean no bound.
  const possible = said.filter((at) => at > 0 && at <= now + clockSkew && at < expiresAt);
  return possible.length === 0 ? undefined : Math.max(...possible);
}

import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { isLoopbackAddress } from '../util/loopback.ts';

/** Whether only this machine can reach this address. An unusual address counts as reachable from elsewhere. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || isLoopbackAddress(name);
}

/** The name in a Host header, without port and brackets. Brackets stand around the whole name, or are part of a strange one. */
export function nameInHost(header: string): string {
  const name = header.replace(/:\d*$/, '');
  return name
    .replace(/^\[([^\]]*)\]$/, '$1')
    .toLowerCase()
    .replace(/\.$/, '');
}

/**
 * Whether a request may name us so. A page of a foreign site can make a browser on this machine ask us, under the
 * site's own name (DNS rebinding), and then read the answer. Names that no foreign site can own are safe. A browser
 * always sends a Host.
 */
export function isOurName(header: string | undefined, ownNames: readonly string[]): boolean {
  if (header === undefined) return true;
  const name = nameInHost(header);
  if (isIP(name) !== 0 || name === 'localhost' || name.endsWith('.localhost')) return true;
  return ownNames.some((own) => own.toLowerCase() === name);
}

/** `Sec-Fetch-Site` of a request that no page made: its user typed the address. */
const typed = 'none';

/**
 * Whether a page of another site made a browser send this. Browsers say it by one header or both; other programs send neither.
 * Source: Fetch Metadata, and RFC 6454.
 */
export function isForeignPage(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== typed) return true;
  if (origin === undefined) return false;
  // "null" is the origin of sandboxed pages and of files.
  return typeof origin !== 'string' || !URL.canParse(origin) || new URL(origin).host !== host;
}

/** The token that a request brings: as a bearer, or as the password of any user. */
export function tokenIn(authorization: string | undefined): string | undefined {
  const [, scheme = '', value = ''] = /^(\S+) +(\S+)$/.exec(authorization?.trim() ?? '') ?? [];
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return value;
    case 'basic': {
      const credentials = Buffer.from(value, 'base64').toString('utf8');
      const at = credentials.indexOf(':');
      return at < 0 ? undefined : credentials.slice(at + 1);
    }
    default:
      return undefined;
  }
}

/** Takes the same time however much of it is right. */
export function isSameToken(given: string, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

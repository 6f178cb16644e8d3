import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The environment of a program that runs on a machine whose wall clock is off, by Debian's libfaketime. Its monotonic clock is
 * right, as that of such a machine.
 */
export function wrongClock(seconds: number): Record<string, string> {
  if (seconds === 0) return {};
  const offset = `${seconds > 0 ? '+' : ''}${seconds}`;
  return { LD_PRELOAD: libfaketime(), FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}

/** Below the directory of the machine's architecture. */
function libfaketime(): string {
  const found = readdirSync('/usr/lib')
    .map((name) => join('/usr/lib', name, 'faketime/libfaketimeMT.so.1'))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error('no libfaketime below /usr/lib: apt-get install libfaketime');
  return found;
}

/**
 * Loaded before the tests (`./scripts/test --slow-disk`): each call of `node:fs/promises` and of an open file takes a few milliseconds more or
 * less, so that what is asked of the disk at once comes back in any order. A test that is right in one order alone fails sooner or later.
 */
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout } from 'node:timers';

type Call = (this: unknown, ...args: unknown[]) => Promise<unknown>;

/** Of one call, ms. */
const longest = 8;
/** Tests put clocks of their own in place of the global one. */
const pause = () =>
  new Promise((resolve) => setTimeout(resolve, Math.random() < 0.5 ? 0 : Math.random() * longest));

function slow(of: object, names: readonly string[]): void {
  const calls = of as Record<string, Call>;
  for (const name of names) {
    const call = calls[name];
    if (call === undefined) continue;
    calls[name] = async function (...args) {
      await pause();
      const answer = await call.apply(this, args);
      if (Math.random() < 0.3) await pause();
      return answer;
    };
  }
}

const handle = await files.open('/dev/null');
slow(Object.getPrototypeOf(handle) as object, [
  'read',
  'write',
  'stat',
  'readFile',
  'writeFile',
  'sync',
  'datasync',
  'truncate',
]);
await handle.close();
slow(
  files,
  Object.keys(files).filter((name) => name !== 'constants' && name !== 'watch' && name !== 'glob'),
);
syncBuiltinESMExports();

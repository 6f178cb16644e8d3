import { existsSync, lstatSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { isAbsolute, join } from 'node:path';
import { makeDirectory } from '../util/files.ts';

/**
 * Keeps what Node compiles of thresher and its packages: half of the time that a command takes to begin. Node would take a
 * directory in /tmp, where another user could put code of theirs for us to run. Without a directory that is ours alone
 * nothing is kept, and all goes on.
 */
export function keepCompiled(environment: NodeJS.ProcessEnv): void {
  // One that is set holds for all of Node's programs.
  if (environment['NODE_COMPILE_CACHE'] !== undefined) return;
  const directory = cacheDirectory(environment);
  if (directory !== undefined && isOurs(directory)) enableCompileCache(directory);
}

/** systemd names one (CacheDirectory=), which may be the first of a list. */
function cacheDirectory({ CACHE_DIRECTORY, XDG_CACHE_HOME, HOME }: NodeJS.ProcessEnv): string | undefined {
  const [systemd = ''] = (CACHE_DIRECTORY ?? '').split(':');
  if (isAbsolute(systemd)) return join(systemd, 'compiled');
  if (XDG_CACHE_HOME !== undefined && isAbsolute(XDG_CACHE_HOME))
    return join(XDG_CACHE_HOME, 'thresher', 'compiled');
  // root would create the home of a user without one.
  const hasHome = HOME !== undefined && isAbsolute(HOME) && existsSync(HOME);
  return hasHome ? join(HOME, '.cache', 'thresher', 'compiled') : undefined;
}

/** Makes it where it is not there yet. */
function isOurs(directory: string): boolean {
  try {
    makeDirectory(directory);
    const found = lstatSync(directory);
    return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
  } catch {
    // A read-only disk, or a home that is not there: a daemon's user has none.
    return false;
  }
}

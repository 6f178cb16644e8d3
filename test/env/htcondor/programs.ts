import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../failure.ts';

const run = promisify(execFile);

/** Debian 13 has HTCondor 23.9; `THRESHER_CONDOR_SUITE=sid` takes 25.x. */
const suite = process.env['THRESHER_CONDOR_SUITE'] ?? 'trixie';

/**
 * Where HTCondor and a pool of it are. Daemons and jobs are not root, so all must be open to others: below a home of root,
 * as it usually is, nothing can be.
 */
export function openDirectories(environment: string): { readonly programs: string; readonly pool: string } {
  if (isOpen(environment)) {
    const root = join(environment, 'htcondor');
    return { programs: join(root, suite), pool: join(root, `pool-${suite}`) };
  }
  const root = '/var/cache/thresher/htcondor';
  const name = createHash('sha256').update(environment).digest('hex').slice(0, 12);
  return { programs: join(root, suite), pool: join(root, `pool-${suite}-${name}`) };
}

function isOpen(path: string): boolean {
  if (process.getuid?.() !== 0) return true;
  const others = 0o001;
  if (existsSync(path) && (statSync(path).mode & others) === 0) return false;
  return dirname(path) === path || isOpen(dirname(path));
}

/** Unpacks HTCondor once, in 12 s. */
export async function unpackPrograms(programs: string): Promise<void> {
  if (existsSync(`${programs}.done`)) return;
  console.error(`unpacking HTCondor of Debian ${suite} into ${programs}`);
  mkdirSync(dirname(programs), { recursive: true, mode: 0o755 });
  try {
    await run(join(import.meta.dirname, 'unpack.sh'), [suite, programs]);
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Failure(`HTCondor cannot be unpacked: ${said || String(error)}`);
  }
}

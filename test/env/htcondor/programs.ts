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
  await unpack('condor', suite, programs);
}

/** Only this suite of Debian has apptainer. */
const apptainerSuite = 'sid';

/** Unpacks apptainer once, in 10 s, beside the programs of HTCondor: jobs run it as they run any program of their machine. */
export async function unpackApptainer(environment: string): Promise<string> {
  const directory = join(dirname(openDirectories(environment).programs), `apptainer-${apptainerSuite}`);
  await unpack('apptainer', apptainerSuite, directory);
  return directory;
}

async function unpack(name: 'condor' | 'apptainer', from: string, directory: string): Promise<void> {
  if (existsSync(`${directory}.done`)) return;
  console.error(`unpacking ${name} of Debian ${from} into ${directory}`);
  mkdirSync(dirname(directory), { recursive: true, mode: 0o755 });
  try {
    await run(join(import.meta.dirname, 'unpack.sh'), [from, directory, name]);
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Failure(`${name} cannot be unpacked: ${said || String(error)}`);
  }
}

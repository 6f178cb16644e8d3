import { Failure } from '../failure.ts';
import { poolStatus, startPool, stopPool } from './pool.ts';
import { openDirectories, unpackPrograms } from './programs.ts';

const usage = `usage: ./scripts/test-env htcondor start|stop|status

  start    start a pool on loopback if none runs (collector, negotiator, startd, two schedds), and print its CONDOR_CONFIG
  stop     end it and leave nothing but the unpacked programs
  status   print as JSON what runs, and how its schedds are reached; exit code 3 if it does not run

HTCondor is unpacked from Debian packages, once, and not installed: THRESHER_CONDOR_SUITE says from which suite (trixie:
23.9, sid: 25.x). Everything is kept below THRESHER_TEST_ENV, by default ~/.cache/thresher; for root, whose home jobs cannot
see, in /var/cache/thresher.`;

const [directory = '', action = '', ...more] = process.argv.slice(2);
try {
  if (more.length > 0) throw new Failure(`too many arguments: ${more.join(' ')}\n\n${usage}`);
  const { programs, pool } = openDirectories(directory);
  switch (action) {
    case 'start':
      await unpackPrograms(programs);
      console.log((await startPool(pool, programs)).local.config);
      break;
    case 'stop':
      await stopPool(pool);
      break;
    case 'status': {
      const status = poolStatus(pool);
      console.log(JSON.stringify(status, undefined, 2));
      if (!status.running) process.exitCode = 3;
      break;
    }
    default:
      throw new Failure(`"${action}" is no action\n\n${usage}`);
  }
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  console.error(`test-env: ${error.message}`);
  process.exitCode = 1;
}

import { parseArgs } from 'node:util';
import { Failure } from '../failure.ts';
import { poolStatus, startPool, stopPool } from './pool.ts';
import { openDirectories, unpackPrograms } from './programs.ts';

const usage = `usage: ./scripts/test-env htcondor start|stop|status [--for PID]

  start    start a pool on loopback if none runs (collector, negotiator, startd, two schedds), and print its CONDOR_CONFIG
  stop     end it and leave nothing but the unpacked programs; with --for PID only if nobody else needs it
  status   print as JSON what runs, and how its schedds are reached; exit code 3 if it does not run

  --for PID  this process needs it: so that a stop for another one keeps it

HTCondor is unpacked from Debian packages, once, and not installed: THRESHER_CONDOR_SUITE says from which suite (trixie:
23.9, sid: 25.x). Everything is kept below THRESHER_TEST_ENV, by default ~/.cache/thresher; for root, whose home jobs cannot
see, in /var/cache/thresher.`;

function parsed(args: string[]) {
  try {
    return parseArgs({ args, allowPositionals: true, options: { for: { type: 'string' } } });
  } catch (error) {
    throw new Failure(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

const [directory = '', ...args] = process.argv.slice(2);
try {
  const { values, positionals } = parsed(args);
  const [action = '', ...more] = positionals;
  if (more.length > 0) throw new Failure(`too many arguments: ${more.join(' ')}\n\n${usage}`);
  const holder = values.for === undefined ? undefined : Number(values.for);
  if (holder !== undefined && !(Number.isSafeInteger(holder) && holder > 0)) {
    throw new Failure(`--for is "${values.for ?? ''}": write the id of a process`);
  }
  const { programs, pool } = openDirectories(directory);
  switch (action) {
    case 'start':
      await unpackPrograms(programs);
      console.log(
        (await startPool(pool, programs, { ...(holder !== undefined && { holder }) })).local.config,
      );
      break;
    case 'stop':
      await stopPool(pool, holder);
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

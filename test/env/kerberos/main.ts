import { Failure } from '../failure.ts';
import { kdcStatus, startKdc, stopKdc } from './kdc.ts';

const usage = `usage: ./scripts/test-env kerberos start|stop|status

  start    start a KDC on loopback if none runs, and print where its krb5.conf is
  stop     end it and leave nothing
  status   print as JSON what runs; exit code 3 if it does not

Everything is kept below THRESHER_TEST_ENV, by default ~/.cache/thresher.`;

const [directory = '', action = '', ...more] = process.argv.slice(2);
try {
  if (more.length > 0) throw new Failure(`too many arguments: ${more.join(' ')}\n\n${usage}`);
  switch (action) {
    case 'start':
      console.log((await startKdc(directory)).config);
      break;
    case 'stop':
      await stopKdc(directory);
      break;
    case 'status': {
      const status = kdcStatus(directory);
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

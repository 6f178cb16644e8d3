/** For tests, loaded before the program by `--import`: the process gets a SIGHUP as the program's first big module is looked for. */
import { registerHooks } from 'node:module';

let sent = false;
registerHooks({
  resolve(specifier, context, next) {
    if (!sent && /\/program\.[jt]s$/.test(specifier)) {
      sent = true;
      process.kill(process.pid, 'SIGHUP');
    }
    return next(specifier, context);
  },
});

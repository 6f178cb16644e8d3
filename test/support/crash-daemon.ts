/** A daemon that dies by SIGKILL at a step: `node crash-daemon.ts CONFIG STEP`. The rest is the real thing. */
import { readSettings } from '../../src/config/settings/settings.ts';
import { Daemon } from '../../src/daemon/daemon.ts';
import { createLog } from '../../src/daemon/logging.ts';
import { systemClock } from '../../src/util/clock.ts';

const [config = '', at = ''] = process.argv.slice(2);
const result = readSettings(config);
if (!result.ok) throw new Error(JSON.stringify(result.problems));
await Daemon.start({
  settings: result.settings,
  clock: systemClock,
  random: Math.random,
  log: createLog({ level: 'info', format: 'plain' }),
  step: (step) => {
    if (step === at) process.kill(process.pid, 'SIGKILL');
  },
});

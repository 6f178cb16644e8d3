/** A daemon that dies by SIGKILL at a step: `node crash-daemon.ts CONFIG STEP DIRECTORY EXTENSION`. The rest is the real thing. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as settings from '../../src/config/settings/settings.ts';
import { keepCompiled } from '../../src/cli/compile-cache.ts';
import type * as daemon from '../../src/daemon/daemon.ts';
import type * as logging from '../../src/daemon/logging.ts';
import type * as clock from '../../src/util/clock.ts';

const [config = '', at = '', directory = '', extension = ''] = process.argv.slice(2);
keepCompiled(process.env);
const load = (path: string): Promise<unknown> =>
  import(pathToFileURL(join(directory, `${path}.${extension}`)).href);
const { readSettings } = (await load('config/settings/settings')) as typeof settings;
const { Daemon } = (await load('daemon/daemon')) as typeof daemon;
const { createLog } = (await load('daemon/logging')) as typeof logging;
const { systemClock } = (await load('util/clock')) as typeof clock;

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

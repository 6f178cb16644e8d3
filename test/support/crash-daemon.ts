/**
 * A daemon that dies by SIGKILL at a step: `node crash-daemon.ts CONFIG STEP DIRECTORY EXTENSION`. The rest is the real thing.
 * The step `before NAME TEXT` is the moment before a file of this name, with this text in it, takes its place; `after NAME TEXT`
 * the moment after.
 */
import { readFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { basename, join } from 'node:path';
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

// SIGSTOP, instead: whoever goes on after a SIGCONT does so as if nothing had been.
const signal = process.env['THRESHER_TEST_SIGNAL'] ?? 'SIGKILL';
let isDone = false;
const die = () => {
  if (isDone) return;
  isDone = true;
  process.kill(process.pid, signal);
};
const over = Promise.withResolvers<Error>();
const [, moment, file, text = ''] = /^(before|after) (\S+) (.+)$/.exec(at) ?? [];
if (moment !== undefined) {
  const { rename } = promises;
  promises.rename = async (from, to) => {
    const isMeant = basename(String(to)) === file && readFileSync(String(from), 'utf8').includes(text);
    if (isMeant && moment === 'before') die();
    await rename(from, to);
    if (isMeant) die();
  };
  syncBuiltinESMExports();
}

const result = readSettings(config);
if (!result.ok) throw new Error(JSON.stringify(result.problems));
const running = await Daemon.start({
  settings: result.settings,
  clock: systemClock,
  random: Math.random,
  log: createLog({ level: 'info', format: 'plain' }),
  mustEnd: (error) => {
    over.resolve(error);
  },
  step: (step) => {
    if (step === at) die();
  },
});
console.log(String(await over.promise));
await running.stop();
process.exit(1);

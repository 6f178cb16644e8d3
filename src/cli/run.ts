import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { Daemon } from '../daemon/daemon.ts';
import { createLog } from '../daemon/logging.ts';
import { Notifier, systemdNotify, takeServiceManager } from '../daemon/notify.ts';
import { logProblem } from '../daemon/problem-log.ts';
import { openBesideDaemon } from '../daemon/reader.ts';
import { watchOver } from '../daemon/watchdog.ts';
import { parseDuration } from '../util/duration.ts';
import { type Environment, type GlobalOptions, loadSettingsWithProblems } from './environment.ts';
import { showLive } from './live.ts';

interface RunOptions {
  readonly for?: number;
  readonly live?: true;
}

/** How long after a stop that does not end the process ends by force, ms beyond `master.shutdownTimeout`. */
const lastResort = 10_000;

function durationArgument(text: string): number {
  const duration = parseDuration(text);
  if (duration === undefined)
    throw new InvalidArgumentError('It must be a duration such as 20s, 5m or 1h30m.');
  return duration;
}

export function addRun(program: Command, environment: Environment): void {
  program
    .command('run')
    .description('the daemon, in the foreground')
    .option('--for <duration>', 'stop by itself after this time, as on SIGTERM', durationArgument)
    .option('--live', 'show on the standard output what happens')
    .action(async (options: RunOptions, command: Command) => {
      await run(command.optsWithGlobals<GlobalOptions>(), options, environment);
    });
}

async function run(global: GlobalOptions, options: RunOptions, environment: Environment): Promise<void> {
  const { clock, random, out, err } = environment;
  const { settings, problems } = loadSettingsWithProblems(global);
  const { level, format } = settings.values.log;
  const file = settings.logFile;
  // The live view says what happens; a table that stays in place bears no other lines beside it.
  const live = options.live === true && file === undefined;
  const logFile = live && out.isTTY ? join(settings.stateDir, 'thresher.log') : file;
  const log = createLog({
    level: live && !out.isTTY && level === 'info' ? 'warn' : level,
    ...(format === undefined ? {} : { format }),
    ...(logFile === undefined ? {} : { file: logFile }),
  });
  for (const problem of problems) logProblem(log, problem);
  const stop = stopRequest(options.for, environment);
  // One that comes too early must not end the process; the file is read in a moment anyway.
  let hungUp: () => void = () => undefined;
  process.on('SIGHUP', () => {
    hungUp();
  });
  const { socket, watchdog } = takeServiceManager(process.env, process.pid);
  const notifier = new Notifier(socket === undefined ? undefined : systemdNotify(socket), { clock, log });
  const daemon = await notifier.whileStarting(Daemon.start({ settings, clock, random, log }));
  watchOver(daemon, { clock, log, notifier, interval: watchdog });
  notifier.ready();
  hungUp = () => {
    // A closed terminal ends what runs on it; a service is not to be ended by whoever expects a reload.
    if (options.live === true) process.kill(process.pid, 'SIGTERM');
    else reload(daemon, notifier).catch(() => undefined);
  };
  try {
    if (options.live === true) {
      const { store } = await openBesideDaemon(settings, 'read');
      await showLive(store, 'unknown', environment, AbortSignal.any([stop, outputFails(out)])).finally(() =>
        store.close(),
      );
    }
    await aborted(stop);
  } finally {
    const patience = settings.values.master.shutdownTimeout * 1000 + lastResort;
    // A plugin or a disk that hangs must not keep a service from ending.
    setTimeout(() => {
      err.write('thresher: the stop did not come to its end; ending by force\n');
      process.exit(1);
    }, patience).unref();
    notifier.stopping(patience);
    await daemon.stop();
    await notifier.flushed();
    await log.close();
  }
  // Handles that a plugin left open must not keep the process.
  process.exit(0);
}

async function reload(daemon: Daemon, notifier: Notifier): Promise<void> {
  notifier.reloading();
  try {
    await daemon.reload('SIGHUP');
  } finally {
    // Whatever became of it: a daemon that is for ever reloading can be told nothing more.
    notifier.ready();
  }
}

/** Aborts when nobody reads the output any more: that ends the view, not the daemon. */
function outputFails(out: NodeJS.WriteStream): AbortSignal {
  const failed = new AbortController();
  out.removeAllListeners('error');
  out.on('error', () => {
    failed.abort();
  });
  return failed.signal;
}

/** Aborts on SIGTERM, SIGINT, or when the time is over; a second signal ends the process at once. */
function stopRequest(duration: number | undefined, { clock }: Environment): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(1);
      stop.abort();
    });
  }
  if (duration !== undefined) {
    clock.sleep(duration, stop.signal).then(
      () => {
        stop.abort();
      },
      () => undefined,
    );
  }
  return stop.signal;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
}

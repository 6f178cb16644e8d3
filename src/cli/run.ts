import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { factoryEvents } from '../agents/events.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import { Daemon, type DaemonOptions } from '../daemon/daemon.ts';
import { requireLogFile } from '../daemon/log-file.ts';
import { createLog } from '../daemon/logging.ts';
import { saveMemory } from '../daemon/supervision/memory.ts';
import { Notifier, systemdNotify, takeServiceManager } from '../daemon/supervision/notify.ts';
import { logProblem } from '../daemon/reports/problem-log.ts';
import { openBesideDaemon } from '../daemon/reader.ts';
import { watchOver } from '../daemon/supervision/watchdog.ts';
import type { LeaseHolder } from '../store/lease-holder.ts';
import { Standing } from './standing.ts';
import type { HttpOptions, HttpServer } from '../http/server.ts';
import type { Log } from '../plugins/contracts/index.ts';
import { parseDuration } from '../util/duration.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { endByForceAfter } from './end.ts';
import type { ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { loadSettingsWithProblems } from './opened.ts';
import { showLive } from './live.ts';

interface RunOptions {
  readonly for?: number;
  readonly live?: true;
  readonly httpPort?: number;
}

/** How long after a stop that does not end the process ends by force, ms beyond `master.shutdownTimeout`. */
const lastResort = 10_000;
/** Node lets a longer timer end at once, and would end every stop by force, ms. */
const longestTimer = 2 ** 31 - 1;

function durationArgument(text: string): number {
  const duration = parseDuration(text);
  if (duration === undefined)
    throw new InvalidArgumentError('It must be a duration such as 20s, 5m or 1h30m.');
  return duration;
}

export function portArgument(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError('It must be a port: a whole number from 0 to 65535.');
  return Number(text);
}

export function addRun(command: Command, environment: Environment): void {
  command
    .option('--for <duration>', 'stop by itself after this time, as on SIGTERM', durationArgument)
    .option('--live', 'show events on the standard output')
    .option('--http-port <port>', 'serve HTTP on this port instead of the one in the settings', portArgument)
    .action(async (options: RunOptions) => {
      await run(command.optsWithGlobals<GlobalOptions>(), options, environment);
    });
}

/** Runs the daemon until it is told to stop. */
export async function run(
  global: GlobalOptions,
  options: RunOptions,
  environment: Environment,
): Promise<void> {
  const { out, hangUps } = environment;
  hangUps.hold();
  const { settings: written, problems } = loadSettingsWithProblems(global);
  const settings = withPort(written, options.httpPort);
  const { level, format } = settings.values.log;
  const file = settings.logFile;
  // The live view says what happens; a table that stays in place bears no other lines beside it.
  const live = options.live === true && file === undefined;
  const logFile = live && out.isTTY ? join(settings.stateDir, 'thresher.log') : file;
  if (file !== undefined) await requireLogFile(file);
  const log = createLog({
    level: live && !out.isTTY && level === 'info' ? 'warn' : level,
    ...(format === undefined ? {} : { format }),
    ...(logFile === undefined ? {} : { file: logFile }),
  });
  for (const problem of problems) logProblem(log, problem);
  try {
    await startAndStop(settings, options, environment, log);
  } finally {
    await log.close();
  }
}

async function startAndStop(
  settings: LoadedSettings,
  options: RunOptions,
  environment: Environment,
  log: Log,
): Promise<void> {
  const { clock, random, out, hangUps } = environment;
  const patience = Math.min(settings.values.master.shutdownTimeout * 1000 + lastResort, longestTimer);
  const stopping = stopRequest(options.for, environment);
  const stop = stopping.signal;
  // A plugin or a disk that hangs must not keep a service from ending, nor its start.
  stop.addEventListener('abort', () => {
    endByForceAfter(patience);
  });
  const files = new OperatorFiles({ clock });
  const http = await httpServer({ settings, clock, files, log });
  const { socket, watchdog } = takeServiceManager(process.env, process.pid);
  const notifier = new Notifier(socket === undefined ? undefined : systemdNotify(socket), { clock, log });
  let whyNot: ThresherError | undefined;
  const mustEnd = (error: ThresherError) => {
    whyNot = error;
    stopping.abort();
  };
  const standing = new Standing({ settings, clock, random, log, http, notifier });
  const waiting = (holder: LeaseHolder, factoryId: string) => {
    standing.by(holder, factoryId);
  };
  const parts = { settings, clock, random, files, log, mustEnd, waiting, signal: stop };
  const daemon = await notifier.whileStarting(startDaemon(parts, http)).catch(async (error: unknown) => {
    await standing.over();
    await http?.close();
    // A standby that is told to stop has nothing to hand over.
    if (!stop.aborted || error !== stop.reason) throw error;
    return undefined;
  });
  await standing.over();
  if (daemon === undefined) return;
  watchOver(daemon, { clock, log, notifier, interval: watchdog });
  saveMemory(daemon, clock);
  notifier.ready();
  hangUps.deliverTo(() => {
    // A closed terminal ends the programs that run on it; but an operator who expects a reload must not end a service.
    if (options.live === true) process.kill(process.pid, 'SIGTERM');
    else reload(daemon, notifier).catch(() => undefined);
  });
  try {
    if (options.live === true) {
      const { store } = await openBesideDaemon(settings, 'read');
      const view = { ...environment, url: http?.url };
      await showLive(store, 'unknown', view, AbortSignal.any([stop, outputFails(out)])).finally(() =>
        store.close(),
      );
    }
    await aborted(stop);
  } finally {
    stopping.abort();
    notifier.stopping(patience);
    await daemon.stop();
    await notifier.flushed();
  }
  // The service manager starts another one.
  if (whyNot !== undefined) throw whyNot;
}

async function reload(daemon: Daemon, notifier: Notifier): Promise<void> {
  notifier.reloading();
  try {
    await daemon.reload('SIGHUP');
  } finally {
    // Also after a failure: systemd passes no further message to a daemon that is for ever reloading.
    notifier.ready();
  }
}

function withPort(settings: LoadedSettings, port: number | undefined): LoadedSettings {
  if (port === undefined) return settings;
  const { values } = settings;
  return { ...settings, values: { ...values, http: { ...values.http, port } } };
}

/** A daemon without HTTP does not load what serves it, which is a tenth of its start. */
async function httpServer(options: HttpOptions): Promise<HttpServer | undefined> {
  if (!options.settings.values.http.enabled) return undefined;
  const { HttpServer } = await import('../http/server.ts');
  return new HttpServer(options);
}

/** Its port is bound before anything is submitted: one that is in use stops the start. */
async function startDaemon(options: DaemonOptions, http: HttpServer | undefined): Promise<Daemon> {
  if (http === undefined) return Daemon.start(options);
  const events = factoryEvents(options.log);
  http.metrics.subscribeTo(events);
  await http.check();
  try {
    return await Daemon.start({
      ...options,
      events,
      services: (daemon) => [http.serving(daemon)],
    });
  } catch (error) {
    await http.close();
    throw error;
  }
}

/** Aborts when the reader of the output is gone: that ends the view, not the daemon. */
function outputFails(out: NodeJS.WriteStream): AbortSignal {
  const failed = new AbortController();
  out.removeAllListeners('error');
  out.on('error', () => {
    failed.abort();
  });
  return failed.signal;
}

/** Aborts on SIGTERM, SIGINT, or when the time is over; a second signal ends the process at once. */
function stopRequest(duration: number | undefined, { clock }: Environment): AbortController {
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
  return stop;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
}

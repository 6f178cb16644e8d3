import { findSettings, ownSettings } from '../config/harvester/places.ts';
import { thisMachine } from '../config/settings/machine.ts';
import { isError, type LoadedSettings, readSettings } from '../config/settings/settings.ts';
import { openBesideDaemon } from '../daemon/reader.ts';
import type { StateDir } from '../daemon/state-dir.ts';
import type { Log } from '../plugins/contracts/index.ts';
import type { Store } from '../store/store.ts';
import { type Clock, systemClock } from '../util/clock.ts';
import { systemRandom } from '../util/random.ts';
import type { Problem } from '../util/located.ts';
import { HangUps } from './hang-ups.ts';
import { MistakesInFiles } from './problems.ts';

/** What every subcommand may use of the world. */
export interface Environment {
  readonly out: NodeJS.WriteStream;
  readonly err: NodeJS.WriteStream;
  readonly clock: Clock;
  readonly random: () => number;
  readonly hangUps: HangUps;
}

export const realEnvironment: Environment = {
  out: process.stdout,
  err: process.stderr,
  clock: systemClock,
  random: systemRandom,
  hangUps: new HangUps(),
};

/** Ends a subcommand that said everything already with this exit status. */
export class ExitStatus extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`exit status ${status}`);
    this.status = status;
  }
}

export interface GlobalOptions {
  /** Undefined: looked for in the usual places. */
  readonly config?: string | undefined;
  readonly stateDir?: string;
}

/** @throws MistakesInFiles, a line per mistake in the settings file; `settings-missing` without one. */
export function loadSettings(options: GlobalOptions): LoadedSettings {
  return loadSettingsWithProblems(options).settings;
}

/** The settings with what is worth a warning or a notice in them. @throws as `loadSettings`. */
export function loadSettingsWithProblems({ config, stateDir }: GlobalOptions): {
  readonly settings: LoadedSettings;
  readonly problems: readonly Problem[];
} {
  const result = readSettings(settingsFile({ config }), stateDir);
  if (result.ok) return result;
  throw new MistakesInFiles(result.problems.filter(isError));
}

/** The settings file that was named, or the usual one. @throws ThresherError `settings-missing`, `settings-ambiguous` */
export function settingsFile({ config }: Pick<GlobalOptions, 'config'>): string {
  return config ?? usualSettings();
}

/** Where nobody named the file, whoever reads Harvester's must be told. On the standard error output: the other is data. */
function usualSettings(): string {
  const file = findSettings(thisMachine());
  if (file !== ownSettings) {
    realEnvironment.err.write(`thresher: the settings are those of ${file}: there is no ${ownSettings}\n`);
  }
  return file;
}

/** Opens the store, and closes it whatever happens. */
export async function withStore<T>(
  options: GlobalOptions,
  access: 'read' | 'write',
  use: (opened: { store: Store; dir: StateDir; settings: LoadedSettings }) => Promise<T>,
): Promise<T> {
  const settings = loadSettings(options);
  const opened = await openBesideDaemon(settings, access);
  try {
    return await use({ ...opened, settings });
  } finally {
    await opened.store.close();
  }
}

/** For subcommands whose plugins may log: the standard output is theirs alone. */
export const noLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

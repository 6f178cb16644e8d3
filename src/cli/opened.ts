import { findSettings, ownSettings } from '../config/settings/harvester-file/places.ts';
import { thisMachine } from '../config/settings/machine.ts';
import { isError, type LoadedSettings, readSettings } from '../config/settings/settings.ts';
import { openBesideDaemon } from '../daemon/reader.ts';
import type { StateDir } from '../daemon/state-dir.ts';
import type { Store } from '../store/store.ts';
import type { Problem } from '../util/located.ts';
import { type GlobalOptions, realEnvironment } from './environment.ts';
import { MistakesInFiles } from './problems.ts';

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

/**
 * If the command line names no file, a user who gets Harvester's must learn of it. The message goes to the standard
 * error output, since the other one carries data.
 */
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
  use: (opened: {
    readonly store: Store;
    readonly dir: StateDir;
    readonly factoryId: string;
    readonly settings: LoadedSettings;
  }) => Promise<T>,
): Promise<T> {
  const settings = loadSettings(options);
  const opened = await openBesideDaemon(settings, access);
  try {
    return await use({ ...opened, settings });
  } finally {
    await opened.store.close();
  }
}

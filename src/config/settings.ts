import { dirname, resolve } from 'node:path';
import { validate as isCron } from 'node-cron';
import { type Problem, readYamlFile } from '../util/located.ts';
import { check } from '../util/schema.ts';
import { Settings } from './settings-schema.ts';

/** The daemon's settings with every path absolute. */
export interface LoadedSettings {
  readonly file: string;
  readonly values: Settings;
  readonly stateDir: string;
  readonly queueFile: string;
  readonly logFile?: string;
  readonly tokenFile?: string;
}

export type SettingsResult =
  | { readonly ok: true; readonly settings: LoadedSettings }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const defaultStateDir = '/var/lib/thresher';

/** Reads thresher.yaml. `stateDir` is the command line's, which wins. */
export function readSettings(path: string, stateDir?: string): SettingsResult {
  const file = resolve(path);
  const located = readYamlFile(file);
  if (located.value === undefined) return { ok: false, problems: located.problems };
  const checked = check(Settings, located.value);
  if (!checked.ok) {
    const problems = checked.problems.map(({ pointer, code, message }): Problem => {
      return { file, pointer, line: located.lineOf(pointer), severity: 'error', code, message };
    });
    return { ok: false, problems };
  }
  const values = checked.value;
  const { cron } = values.sweeper;
  if (cron !== undefined && !isCron(cron)) {
    const pointer = '/sweeper/cron';
    const message = `cron is "${cron}"; it must be a cron expression such as "*/10 * * * *"`;
    return {
      ok: false,
      problems: [
        { file, pointer, line: located.lineOf(pointer), severity: 'error', code: 'wrong-type', message },
      ],
    };
  }
  const base = dirname(file);
  const settings = {
    file,
    values,
    stateDir:
      stateDir === undefined ? resolve(base, values.master.stateDir ?? defaultStateDir) : resolve(stateDir),
    queueFile: resolve(base, values.qconf.configFile),
    ...(values.log.file !== undefined && { logFile: resolve(base, values.log.file) }),
    ...(values.http.tokenFile !== undefined && { tokenFile: resolve(base, values.http.tokenFile) }),
  };
  return { ok: true, settings };
}

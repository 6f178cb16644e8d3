import { dirname, extname, resolve } from 'node:path';
import type { ValidateFunction } from 'ajv';
import { validate as isCron } from 'node-cron';
import { parseAddress, type PostgresqlOptions } from '../../util/postgresql-options.ts';
import type { Located, Problem } from '../../util/located.ts';
import { rememberEnvironment, rememberUrlsIn } from '../../util/own-secrets.ts';
import { readLocatedSync } from '../../util/located-file.ts';
import { verdict } from '../../util/verdict.ts';
import { findQueueFile } from './harvester-file/places.ts';
import { parseHarvesterSettings } from './harvester-file/harvester-settings.ts';
import { type Machine, thisMachine } from './machine.ts';
import type { Settings } from './settings-schema.ts';
import { validate } from './settings-validator.ts';
import { parseYamlSettings } from './yaml-settings.ts';

/** The daemon's settings with every path absolute. */
export interface LoadedSettings {
  readonly file: string;
  readonly values: Settings;
  readonly stateDir: string;
  readonly queueFile: string;
  /** Where the database is, if it is none of SQLite. */
  readonly postgresql?: PostgresqlOptions;
  readonly logFile?: string;
  readonly tokenFile?: string;
  readonly writeTokenFile?: string;
  /** The position of a setting, by its JSON pointer; for a missing one, the position at which it would stand. */
  readonly placeOf: (pointer: string) => Place;
}

type Place = Pick<Problem, 'file' | 'pointer' | 'line'>;

/** Problems of settings that can be used are warnings and notices; of others at least one is an error. */
export type SettingsResult =
  | { readonly ok: true; readonly settings: LoadedSettings; readonly problems: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const defaultStateDir = '/var/lib/thresher';

/** Reads thresher.yaml or panda_harvester.cfg. `stateDir` is the command line's, which wins. */
export function readSettings(
  path: string,
  stateDir?: string,
  machine: Machine = thisMachine(),
): SettingsResult {
  const file = resolve(path);
  const base = dirname(file);
  let harvesters = false as boolean;
  const located = readLocatedSync(file, 'settings', (text) => {
    harvesters = isHarvesterFile(file, text);
    return harvesters ? parseHarvesterSettings(text, file, machine) : parseYamlSettings(text, file, machine);
  });
  const { value, problems: found } = located;
  // Commands that fetch nothing read what others fetched with these logins, and show it.
  rememberEnvironment(machine.env);
  rememberUrlsIn(value);
  if (value === undefined) return { ok: false, problems: found };
  const checked = verdict<Settings>(validate as ValidateFunction, value);
  const wrong = (pointer: string, code: Problem['code'], message: string): Problem => ({
    ...placeOf(located, pointer),
    severity: 'error',
    code,
    message,
  });
  const mistakes = checked.ok
    ? []
    : checked.problems.map(({ pointer, code, message }) => wrong(pointer, code, message));
  if (!checked.ok || found.some(isError)) return { ok: false, problems: [...found, ...mistakes] };
  const values = checked.value;
  const { cron } = values.sweeper;
  if (cron !== undefined && !isCron(cron)) {
    const message = `cron is "${cron}"; it must be a cron expression such as "*/10 * * * *"`;
    return { ok: false, problems: [...found, wrong('/sweeper/cron', 'wrong-type', message)] };
  }
  const { publicUrl } = values.http;
  if (publicUrl !== undefined && !URL.canParse(publicUrl)) {
    const message = `publicUrl is "${publicUrl}"; it must be an address such as "https://factory.example.org"`;
    return { ok: false, problems: [...found, wrong('/http/publicUrl', 'wrong-type', message)] };
  }
  const { url, sslmode, sslrootcert, passwordFile, leaseDuration, shareQueues, member } = values.database;
  const address = url === undefined ? undefined : parseAddress(url);
  if (address !== undefined && 'wrong' in address)
    return { ok: false, problems: [...found, wrong('/database/url', 'wrong-type', `url: ${address.wrong}`)] };
  if (shareQueues) {
    const refuse = (pointer: string, message: string) =>
      ({ ok: false, problems: [...found, wrong(pointer, 'wrong-type', message)] }) as const;
    if (address === undefined)
      return refuse(
        '/database/shareQueues',
        'shareQueues is true, but there is no url: only daemons on a PostgreSQL database can share queues',
      );
    if (values.submitter.submissionRate !== undefined)
      return refuse(
        '/submitter/submissionRate',
        'submissionRate bounds all queues together, and each daemon that shares them would count for itself: set submissionRate in the queues, or shareQueues to false',
      );
  }
  const { configFile } = values.qconf;
  const queueFile = harvesters
    ? findQueueFile(configFile, base, machine)
    : { file: resolve(base, configFile), problem: undefined };
  const settings = {
    file,
    values,
    stateDir:
      stateDir === undefined ? resolve(base, values.master.stateDir ?? defaultStateDir) : resolve(stateDir),
    queueFile: queueFile.file,
    ...(address !== undefined && {
      postgresql: {
        kind: 'postgresql' as const,
        ...address,
        sslmode,
        leaseDuration: leaseDuration * 1000,
        ...(shareQueues && { member: member ?? machine.hostname }),
        ...(sslrootcert !== undefined && { sslrootcert: resolve(base, sslrootcert) }),
        ...(passwordFile !== undefined && { passwordFile: resolve(base, passwordFile) }),
      },
    }),
    ...(values.log.file !== undefined && { logFile: resolve(base, values.log.file) }),
    ...(values.http.tokenFile !== undefined && { tokenFile: resolve(base, values.http.tokenFile) }),
    ...(values.http.writeTokenFile !== undefined && {
      writeTokenFile: resolve(base, values.http.writeTokenFile),
    }),
    placeOf: (pointer: string) => placeOf(located, pointer),
  };
  const { problem } = queueFile;
  const about = problem === undefined ? [] : [{ ...placeOf(located, '/qconf/configFile'), ...problem }];
  return { ok: true, settings, problems: [...found, ...about] };
}

export function isError({ severity }: Problem): boolean {
  return severity === 'error';
}

function placeOf(located: Located, pointer: string): Place {
  return { file: located.fileOf?.(pointer) ?? located.file, pointer, line: located.lineOf(pointer) };
}

/** By its name; where that says nothing, by its first line: a section header, as no settings in YAML begin. */
function isHarvesterFile(file: string, text: string): boolean {
  const extension = extname(file).toLowerCase();
  if (extension === '.cfg') return true;
  if (extension === '.yaml' || extension === '.yml') return false;
  return /^\uFEFF?(?:\s|[#;].*$)*\[[^\]\n]+\]\s*$/my.test(text);
}

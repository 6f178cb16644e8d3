import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { CondorTools, type ScheddPlace } from '../../clients/htcondor/tools.ts';
import { idleSource } from '../../sources/htcondor-idle/explain.ts';
import type { LoadedSettings } from '../../config/settings/settings.ts';
import type { Clock } from '../../util/clock.ts';

export type { CondorTools };

/** How a pool is reached. What is missing comes from the configuration of HTCondor. */
export type PoolPlace = Pick<ScheddPlace, 'pool' | 'configFile' | 'tokenDirectory'>;

/** Words of the command line about the pool. */
export interface PoolFlags {
  readonly condorPool?: string;
  readonly condorConfig?: string;
  readonly tokenDirectory?: string;
}

/** The pool of the command line, and else that of the settings. Relative paths count from where each is written. */
export function poolPlace(
  flags: PoolFlags,
  settings: Pick<LoadedSettings, 'file' | 'values'> | undefined,
): PoolPlace {
  const written = settings?.values.sources[idleSource] ?? {};
  const given = (name: keyof PoolFlags): string | undefined => {
    const value = (written as Readonly<Record<string, unknown>>)[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const path = (name: 'condorConfig' | 'tokenDirectory'): string | undefined => {
    const flag = flags[name];
    if (flag !== undefined) return resolve(flag);
    const value = given(name);
    return value === undefined ? undefined : resolve(dirname(settings?.file ?? '.'), value);
  };
  const pool = flags.condorPool ?? given('condorPool');
  const configFile = path('condorConfig');
  const tokenDirectory = path('tokenDirectory');
  return {
    ...(pool !== undefined && { pool }),
    ...(configFile !== undefined && { configFile }),
    ...(tokenDirectory !== undefined && { tokenDirectory }),
  };
}

export interface ToolParts {
  readonly clock: Clock;
  /** The environment of this process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** HTCondor's commands for a pool. */
export function poolTools(place: PoolPlace, { clock, environment }: ToolParts): CondorTools {
  const added = hasConfiguration(place, environment) ? {} : withoutConfiguration;
  return new CondorTools({ place, clock, environment: { ...added, ...environment } });
}

/** HTCondor's commands refuse to start without a configuration. A machine that has none can still ask a pool by a token. */
const withoutConfiguration = {
  CONDOR_CONFIG: '/dev/null',
  _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS: 'IDTOKENS',
  _CONDOR_LOG: tmpdir(),
  // A worker behind CCB calls back: to a port of the tool's own, since no daemon here shares one.
  _CONDOR_USE_SHARED_PORT: 'False',
  // Some failures are told only by a tool that knows whose the daemons would be.
  _CONDOR_CONDOR_IDS: `${process.getuid?.() ?? 0}.${process.getgid?.() ?? 0}`,
} as const;

/** Where HTCondor itself looks for one. Source: HTCondor 23.9, `condor_utils/condor_config.cpp`. */
function hasConfiguration({ configFile }: PoolPlace, environment: ToolParts['environment']): boolean {
  if (configFile !== undefined || (environment['CONDOR_CONFIG'] ?? '') !== '') return true;
  return ['/etc/condor', '/usr/local/etc'].some((directory) => existsSync(join(directory, 'condor_config')));
}

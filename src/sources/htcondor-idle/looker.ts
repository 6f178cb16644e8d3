import { resolve } from 'node:path';
import { debugLog } from '../../clients/htcondor/debug-log.ts';
import { PoolClient, type PoolPlace } from '../../clients/htcondor/pool-client.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { PoolLooker } from './look/index.ts';
import type { Looker } from './look/result.ts';
import type { IdleOptions } from './options.ts';

export interface LookerParts {
  readonly clock: Clock;
  /** Hears what the commands of HTCondor say, if the environment asks for it by `_CONDOR_TOOL_DEBUG`. */
  readonly log?: Log;
  /** Whose startds are ours. */
  readonly factoryId: string;
  /** Relative paths in the options count from here. */
  readonly configDir: string;
}

/** Reads the pool that the options name. It asks nothing before the first look. */
export function lookerOf(options: IdleOptions, parts: LookerParts): Looker {
  const { clock, factoryId, configDir, log } = parts;
  const { schedds } = options;
  const pool = new PoolClient({
    place: placeOf(options, configDir),
    clock,
    environment: process.env,
    ...(log && { onDebug: debugLog(log) }),
  });
  return new PoolLooker({ pool, clock, factoryId, ...(schedds && { schedds }) });
}

/** Where the pool of the options is, and the identity to ask it with. */
export function placeOf(
  { condorPool: pool, condorConfig, tokenDirectory: tokens }: IdleOptions,
  configDir: string,
): PoolPlace {
  return {
    ...(pool !== undefined && { pool }),
    ...(condorConfig !== undefined && { configFile: resolve(configDir, condorConfig) }),
    ...(tokens !== undefined && { tokenDirectory: resolve(configDir, tokens) }),
  };
}

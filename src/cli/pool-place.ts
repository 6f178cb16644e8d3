import type { Command } from 'commander';
import { findSettings } from '../config/settings/harvester-file/places.ts';
import { thisMachine } from '../config/settings/machine.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import { type PoolFlags, poolPlace, poolTools } from '../daemon/pool/place.ts';
import type { CondorTools } from '../daemon/pool/place.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { loadSettings } from './opened.ts';

/** Options that say which pool is meant. */
export function withPool(command: Command): Command {
  return command
    .option(
      '--condor-pool <host[:port]>',
      "collector of the pool (default: that of the settings, else HTCondor's own)",
    )
    .option('--condor-config <file>', "HTCondor's configuration, for CONDOR_CONFIG")
    .option('--token-directory <dir>', 'your token of the pool, such as htcondor-pool/admin');
}

/**
 * Settings that the command can do without: those that are named must be right, and else those in the usual place count where
 * there are some.
 */
export function settingsIfAny(options: GlobalOptions): LoadedSettings | undefined {
  if (options.config === undefined) {
    try {
      findSettings(thisMachine());
    } catch (error) {
      if (error instanceof ThresherError && error.code === 'settings-missing') return undefined;
      throw error;
    }
  }
  return loadSettings(options);
}

/** HTCondor's commands for the pool that the command line, or else the settings, name. */
export function poolOf(
  flags: PoolFlags,
  options: GlobalOptions,
  { clock }: Environment,
): { readonly tools: CondorTools; readonly settings: LoadedSettings | undefined } {
  // A pool on the command line stands for itself, whatever the settings say.
  const settings =
    flags.condorPool !== undefined && options.config === undefined ? undefined : settingsIfAny(options);
  return { tools: poolTools(poolPlace(flags, settings), { clock, environment: process.env }), settings };
}

import { resolve } from 'node:path';
import { payloadParts } from '../../worker/payload.ts';
import { defineBackend } from '../contracts/backend.ts';
import type { CheckContext } from '../contracts/definition.ts';
import { checkSubmitter } from './check.ts';
import { HTCondorConnection } from './connection.ts';
import { absolutePaths } from './paths.ts';
import { hostConfigOf, readHostConfig } from './place/schedds.ts';
import { tokensOf } from './place/tokens.ts';
import { HTCondorMonitorConfig, HTCondorSubmitterConfig, HTCondorSweeperConfig } from './schema.ts';
import { called, connections, everywhere } from './where.ts';

/** Harvester's sections of monitor and sweeper name no schedd: they look where the workers are. */
const wherever = () => [`${everywhere}*`];

export const htcondorBackend = defineBackend({
  name: 'HTCondor',
  module: 'thresher/htcondor',
  submitter: {
    aliases: [['pandaharvester.harvestersubmitter.htcondor_submitter', 'HTCondorSubmitter']],
    config: HTCondorSubmitterConfig,
    connections,
    common: called,
    check: checkSubmitter,
    withFiles: withSchedds,
    credentialFiles: (config, configDir) => tokensOf(absolutePaths(config, configDir)),
    payload: payloadParts,
  },
  monitor: {
    aliases: [['pandaharvester.harvestermonitor.htcondor_monitor', 'HTCondorMonitor']],
    config: HTCondorMonitorConfig,
    connections: wherever,
  },
  sweeper: {
    aliases: [['pandaharvester.harvestersweeper.htcondor_sweeper', 'HTCondorSweeper']],
    config: HTCondorSweeperConfig,
    connections: wherever,
  },
  connect: ({ name }, daemon) => new HTCondorConnection(name, daemon),
});

async function withSchedds(
  config: HTCondorSubmitterConfig,
  { configDir, files }: CheckContext,
): Promise<HTCondorSubmitterConfig> {
  const { condorHostConfig: named } = config;
  if (typeof named !== 'string') return config;
  const read = await readHostConfig(files, resolve(configDir, named));
  return read.ok ? { ...config, condorHostConfig: hostConfigOf(read.schedds) } : config;
}

import { resolve } from 'node:path';
import { commonParts } from '../../worker/payload.ts';
import { type CheckContext } from '../contracts/definition.ts';
import { defineBackend } from '../contracts/backend.ts';
import { checkTemplateFile } from './check.ts';
import { LocalConnection } from './connection.ts';
import { LocalHost } from './host.ts';
import { LocalMonitorConfig, LocalSubmitterConfig, LocalSweeperConfig } from './schema.ts';

interface Where {
  readonly workDir?: string;
}

/** Harvester's Dummy plugins do what this backend does with its built-in template. */
const dummy = (kind: string, ...pairs: [module: string, name: string][]) =>
  pairs.map(([module, name]) => [`pandaharvester.harvester${kind}.${module}`, name] as const);

const connections = (config: Where, context: CheckContext) => [`local:${rootOf(config, context)}`];

export const localBackend = defineBackend({
  name: 'Local',
  module: 'thresher/local',
  submitter: {
    aliases: dummy(
      'submitter',
      ['dummy_submitter', 'DummySubmitter'],
      ['dummy_singleton_submitter', 'DummySingletonSubmitter'],
      ['dummy_mcore_submitter', 'DummyMcoreSubmitter'],
    ),
    // Pilots that start on this machine harm no other user.
    defaultDemand: 'fill',
    onThisMachine: true,
    payload: commonParts,
    config: LocalSubmitterConfig,
    connections,
    check: checkTemplateFile,
  },
  monitor: {
    aliases: dummy('monitor', ['dummy_monitor', 'DummyMonitor']),
    config: LocalMonitorConfig,
    connections,
  },
  sweeper: {
    aliases: dummy('sweeper', ['dummy_sweeper', 'DummySweeper']),
    config: LocalSweeperConfig,
    connections,
  },
  connect: ({ config, configDir }, daemon) => {
    const root = rootOf(config, { configDir, stateDir: daemon.stateDir });
    return new LocalConnection(new LocalHost(root, daemon), daemon);
  },
});

function rootOf(
  { workDir }: Where,
  { configDir, stateDir }: Pick<CheckContext, 'configDir' | 'stateDir'>,
): string {
  return workDir === undefined ? resolve(stateDir, 'local') : resolve(configDir, workDir);
}

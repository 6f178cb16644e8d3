import { resolve } from 'node:path';
import { commonParts } from '../../worker/payload.ts';
import type { CheckContext } from '../contracts/definition.ts';
import { defineBackend, type BackendConnection } from '../contracts/backend.ts';
import { LocalHost } from './host.ts';
import { LocalMonitorConfig, LocalSubmitterConfig, LocalSweeperConfig, type LocalDaemon } from './schema.ts';
import { brief } from '../../util/beginning.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { checkSizes } from '../contracts/sizes.ts';
import { loadTemplate } from './template.ts';
import type { Context } from '../contracts/context.ts';
import { LocalMonitor } from './monitor.ts';
import { LocalSubmitter } from './submitter.ts';
import { LocalSweeper } from './sweeper.ts';

/** One work directory with all that starts, follows and ends workers there. */
export class LocalConnection implements BackendConnection<LocalSubmitterConfig> {
  readonly host: LocalHost;
  readonly monitor: LocalMonitor;
  readonly sweeper: LocalSweeper;

  constructor(host: LocalHost, daemon: LocalDaemon) {
    this.host = host;
    this.monitor = new LocalMonitor(host, daemon);
    this.sweeper = new LocalSweeper(host, daemon);
  }

  submitter(config: LocalSubmitterConfig, context: Context): LocalSubmitter {
    return new LocalSubmitter(this.host, config, context);
  }
}

/** Mistakes in the template that a queue names. */
async function checkTemplateFile(
  { templateFile }: LocalSubmitterConfig,
  context: CheckContext,
): Promise<readonly DefinitionProblem[]> {
  if (templateFile === undefined) return [];
  const file = resolve(context.configDir, templateFile);
  const loaded = await loadTemplate(context.files, file);
  if (loaded.ok) return checkSizes(JSON.stringify(loaded.template), file, context);
  return loaded.problems.map((problem) =>
    problem.code === 'file-unreadable'
      ? {
          pointer: '/templateFile',
          code: problem.code,
          message: `${brief(problem.file ?? '')}: ${problem.message}`,
        }
      : problem,
  );
}

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

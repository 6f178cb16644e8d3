import { resolve } from 'node:path';
import { type CheckContext, definePlugin } from '../contracts/definition.ts';
import type { Context } from '../contracts/context.ts';
import { checkSizes } from '../contracts/sizes.ts';
import { LocalHost } from './host.ts';
import { LocalMonitor } from './monitor.ts';
import { LocalMonitorConfig, LocalSubmitterConfig, LocalSweeperConfig } from './schema.ts';
import { LocalSubmitter } from './submitter.ts';
import { LocalSweeper } from './sweeper.ts';
import { loadTemplate } from './template.ts';

interface Where {
  readonly workDir?: string;
}

/** Harvester's Dummy plugins do what this backend does with its built-in template. */
const dummy = (kind: string, ...pairs: [module: string, name: string][]) =>
  pairs.map(([module, name]) => [`pandaharvester.harvester${kind}.${module}`, name] as const);

export const localPlugins = [
  definePlugin({
    kind: 'submitter',
    name: 'LocalSubmitter',
    module: 'thresher/local',
    aliases: dummy(
      'submitter',
      ['dummy_submitter', 'DummySubmitter'],
      ['dummy_singleton_submitter', 'DummySingletonSubmitter'],
      ['dummy_mcore_submitter', 'DummyMcoreSubmitter'],
    ),
    // Pilots of this machine harm nobody else by being started.
    defaultDemand: 'fill',
    config: LocalSubmitterConfig,
    connections: connection,
    check: async (config, context) => {
      if (config.templateFile === undefined) return [];
      const file = resolve(context.configDir, config.templateFile);
      const loaded = await loadTemplate(context.files, file);
      if (loaded.ok) return checkSizes(JSON.stringify(loaded.template), file, context);
      return loaded.problems.map((problem) =>
        problem.code === 'file-unreadable'
          ? {
              pointer: '/templateFile',
              code: problem.code,
              message: `${problem.file ?? ''}: ${problem.message}`,
            }
          : problem,
      );
    },
    create: (config, context) => new LocalSubmitter(host(config, context), config, context),
  }),
  definePlugin({
    kind: 'monitor',
    name: 'LocalMonitor',
    module: 'thresher/local',
    aliases: dummy('monitor', ['dummy_monitor', 'DummyMonitor']),
    config: LocalMonitorConfig,
    connections: connection,
    create: (config, context) => new LocalMonitor(host(config, context), config, context),
  }),
  definePlugin({
    kind: 'sweeper',
    name: 'LocalSweeper',
    module: 'thresher/local',
    aliases: dummy('sweeper', ['dummy_sweeper', 'DummySweeper']),
    config: LocalSweeperConfig,
    connections: connection,
    create: (config, context) => new LocalSweeper(host(config, context), config, context),
  }),
];

function root(config: Where, context: CheckContext): string {
  return config.workDir === undefined
    ? resolve(context.stateDir, 'local')
    : resolve(context.configDir, config.workDir);
}

function connection(config: Where, context: CheckContext): string[] {
  return [`local:${root(config, context)}`];
}

function host(config: Where, context: Context): LocalHost {
  const directory = root(config, context);
  return context.share(`local:${directory}`, () => new LocalHost(directory, context));
}

import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { hostnameFor } from '../../util/hostname.ts';
import { check } from '../../util/schema.ts';
import type { Context } from '../contracts/context.ts';
import { type CheckContext, definePlugin } from '../contracts/definition.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { CeTally } from './place/ce-tally.ts';
import { connectionName, hubOf } from './hub.ts';
import { HTCondorMonitor, type OptionsOf } from './monitor.ts';
import { checkLines } from './one-line.ts';
import { absolutePaths, checkNeeded, checkPaths, type NeededBy } from './paths.ts';
import { cesOf } from './place/ce-list.ts';
import { checkCricCes } from './place/cric-ces.ts';
import {
  hostConfigOf,
  isOfMachine,
  readHostConfig,
  readHostConfigSync,
  type ReadSchedds,
  scheddsIn,
  scheddsOf,
} from './place/schedds.ts';
import {
  HTCondorMonitorConfig,
  HTCondorSubmitterConfig,
  HTCondorSweeperConfig,
  type Where,
} from './schema.ts';
import { HTCondorSubmitter } from './submitter.ts';
import { HTCondorSweeper } from './sweeper.ts';
import { neededFiles, perhapsNeeded } from './template/executable.ts';
import { checkSizes } from './template/sizes.ts';
import { loadTemplate, problemOf } from './template/template.ts';
import { checkVariables } from './template/variables.ts';
import { firstThere, templateFiles } from './template/which-file.ts';

/** Shared by all schedds: connections begin with it. */
const everywhere = 'htcondor:';
/** Harvester's sections of monitor and sweeper name no schedd: they look where the workers are. */
const wherever = () => [`${everywhere}*`];

export const htcondorPlugins = [
  definePlugin({
    kind: 'submitter',
    name: 'HTCondorSubmitter',
    module: 'thresher/htcondor',
    aliases: [['pandaharvester.harvestersubmitter.htcondor_submitter', 'HTCondorSubmitter']],
    config: HTCondorSubmitterConfig,
    connections,
    check: async (config, context) => [
      ...(await checkWhere(config, context)),
      ...cesOf(config).problems,
      ...checkCricCes(config),
      ...checkLines(config, context.queue),
      ...(await checkPaths(config, context)),
      ...(await checkTemplates(config, context)),
    ],
    withFiles: async (config, { configDir, files }) => {
      const { condorHostConfig: named } = config;
      if (typeof named !== 'string') return config;
      const read = await readHostConfig(files, resolve(configDir, named));
      return read.ok ? { ...config, condorHostConfig: hostConfigOf(read.schedds) } : config;
    },
    create: (config, context) => {
      const read = schedds(config, context);
      const parts = { config, context, tally: tallyOf(context), schedds: read.ok ? read.schedds : [] };
      return new HTCondorSubmitter(parts);
    },
  }),
  definePlugin({
    kind: 'monitor',
    name: 'HTCondorMonitor',
    module: 'thresher/htcondor',
    aliases: [['pandaharvester.harvestermonitor.htcondor_monitor', 'HTCondorMonitor']],
    config: HTCondorMonitorConfig,
    connections: wherever,
    create: (config, context) => {
      const known = monitorOptions(context);
      const ofQueue = known.get(context.queue) ?? new Map<number, HTCondorMonitorConfig>();
      known.set(context.queue, ofQueue.set(context.configId, config));
      const hub = hubOf(context.connection, context);
      return new HTCondorMonitor({
        hub,
        config,
        context,
        options: optionsOf(known),
        tally: tallyOf(context),
      });
    },
  }),
  definePlugin({
    kind: 'sweeper',
    name: 'HTCondorSweeper',
    module: 'thresher/htcondor',
    aliases: [['pandaharvester.harvestersweeper.htcondor_sweeper', 'HTCondorSweeper']],
    config: HTCondorSweeperConfig,
    connections: wherever,
    create: (config, context) => {
      const hub = hubOf(context.connection, context);
      return new HTCondorSweeper({ hub, config, context, options: optionsOf(monitorOptions(context)) });
    },
  }),
];

const tallyOf = (context: Context): CeTally => context.share(everywhere, () => new CeTally());

/** What the monitor's sections say, by queue and number of its configuration. */
type MonitorOptions = Map<string, Map<number, HTCondorMonitorConfig>>;

/** One monitor follows the workers of all queues on its schedd, those of earlier configurations among them. */
function monitorOptions(context: Context): MonitorOptions {
  return context.share(`${context.connection} options`, (): MonitorOptions => new Map());
}

/** Of a queue that says nothing here (it was removed, say) nobody is given up. */
const onlyLook: HTCondorMonitorConfig = { ...defaults(), heldTimeout: Number.MAX_SAFE_INTEGER };

function defaults(): HTCondorMonitorConfig {
  const checked = check(HTCondorMonitorConfig, {});
  if (!checked.ok) throw new Error('the options of the monitor have defaults');
  return checked.value;
}

function optionsOf(known: MonitorOptions): OptionsOf {
  return (queue = '', configId = NaN) => {
    const ofQueue = known.get(queue);
    if (ofQueue === undefined) return onlyLook;
    return ofQueue.get(configId) ?? ofQueue.get(Math.max(...ofQueue.keys())) ?? onlyLook;
  };
}

function schedds(
  config: Where & { readonly useFQDN?: unknown },
  { configDir }: Pick<CheckContext, 'configDir'>,
): ReadSchedds {
  const { condorHostConfig } = config;
  if (condorHostConfig === undefined) return scheddsOf(config, hostnameFor(config));
  if (typeof condorHostConfig === 'string') return readHostConfigSync(resolve(configDir, condorHostConfig));
  return scheddsIn(condorHostConfig);
}

/** None where the file of schedds cannot be read: that is said by `check`. */
function connections(config: Where, context: Pick<CheckContext, 'configDir'>): string[] {
  const read = schedds(config, context);
  if (!read.ok) return [];
  return read.schedds.filter(({ weight }) => weight > 0).map(connectionName);
}

async function checkWhere(
  config: HTCondorSubmitterConfig,
  context: CheckContext,
): Promise<readonly DefinitionProblem[]> {
  const { condorHostConfig: named } = config;
  const read =
    typeof named === 'string'
      ? await readHostConfig(context.files, resolve(context.configDir, named))
      : schedds(config, context);
  if (!read.ok) return read.problems;
  const { condorHostConfig, condorSchedd, condorPool, eventLog } = config;
  const problems: DefinitionProblem[] = [];
  if (condorHostConfig !== undefined && (condorSchedd ?? condorPool) !== undefined) {
    const message =
      'condorSchedd and condorPool have no effect beside condorHostConfig: leave out one or the other';
    problems.push({ pointer: '/condorHostConfig', severity: 'warning', code: 'unread-option', message });
  }
  const elsewhere = read.schedds.filter((schedd) => !isOfMachine(schedd, hostname()));
  if (eventLog !== undefined && eventLog !== '' && (read.schedds.length > 1 || elsewhere.length > 0)) {
    const message =
      'eventLog is for the one schedd of this machine: events do not say of which schedd a job is, so those of several, or of another machine, would be taken for one another; leave it out';
    problems.push({ pointer: '/eventLog', code: 'wrong-type', message });
  }
  return problems;
}

/** Mistakes in the template, or in those of all kinds of CEs that may be chosen. */
async function checkTemplates(
  written: HTCondorSubmitterConfig,
  context: CheckContext,
): Promise<DefinitionProblem[]> {
  const { configDir, files } = context;
  const config = absolutePaths(written, configDir);
  if (config.templateFile === undefined && config.CEtemplateDir === undefined) {
    const message =
      'neither templateFile nor CEtemplateDir is set, so nothing can be submitted: set one of them';
    return [{ pointer: '/templateFile', code: 'template-wrong', message }];
  }
  const { ces } = cesOf(config);
  const choices = (ces.length === 0 ? [undefined] : ces).map((ce) => templateFiles(config, ce));
  // The kind of a CE is not known: `checkCricCes` says so.
  if (choices.some((files) => files.length === 0)) return [];
  const pointer = config.templateFile === undefined ? '/CEtemplateDir' : '/templateFile';
  const chosen = new Set<string>();
  for (const some of choices) {
    const paths = some.map((file) => resolve(configDir, file));
    chosen.add((await firstThere(paths, files)) ?? '');
  }
  const needs: NeededBy[] = [];
  const problems: DefinitionProblem[] = [];
  for (const file of chosen) {
    const loaded = await loadTemplate(files, file, config);
    const found = loaded.ok ? [...loaded.warnings, ...checkSizes(loaded.template, context)] : loaded.problems;
    const said = found.map((problem) =>
      problem.code === 'file-unreadable'
        ? { pointer, code: problem.code, message: `${file}: ${problem.message}` }
        : problem,
    );
    problems.push(...said);
    if (!loaded.ok) {
      needs.push({ file, needed: perhapsNeeded });
      continue;
    }
    const variables = checkVariables(loaded.template.statements, process.env);
    problems.push(...variables.map((finding) => problemOf(finding, file)));
    needs.push({ file, needed: neededFiles(loaded.template.statements) });
  }
  return [...(await checkNeeded(needs, config, files)), ...problems];
}

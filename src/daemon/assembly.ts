import { CommandAgent, type SweepResult } from '../agents/commands.ts';
import type { Ledger } from '../agents/ledger.ts';
import { MonitorAgent } from '../agents/monitor.ts';
import type { ObservationWriter } from '../agents/observations.ts';
import { Progress } from '../agents/loop.ts';
import { PrunerAgent, retentionAt } from '../agents/pruner.ts';
import type { AgentContext, ConnectedPlugins, QueueRuntime } from '../agents/queue-runtime.ts';
import { ReconcilerAgent } from '../agents/reconciler.ts';
import { SubmitterAgent } from '../agents/submitter.ts';
import { SweeperAgent } from '../agents/sweeper.ts';
import type { QueueConfig, QueueFileResult } from '../config/queues.ts';
import type { Settings } from '../config/settings-schema.ts';
import { messageOf } from '../worker/errors.ts';
import type { LoopSet } from './loop-set.ts';
import { QueueReports } from './queue-reports.ts';
import type { Wiring } from './wiring.ts';

export interface AssemblyParts {
  readonly settings: Settings;
  readonly context: AgentContext;
  readonly ledger: Ledger;
  readonly writer: ObservationWriter;
  readonly loops: LoopSet;
  readonly wiring: Wiring;
}

/** A configuration that workers were submitted with. */
export interface ConfigInUse {
  readonly configId: number;
  readonly config: QueueConfig;
}

/** How often the database is asked whether somebody left a command, ms. */
const commandInterval = 300;
/** Between a monitor's end and its next start when it did not fail, ms. */
const monitorInterval = 1000;
/** What a pass may take on top of one call of a plugin before it counts as stuck: the database's busy time, and more, ms. */
const stuckGrace = 60_000;
const hour = 3_600_000;

/** Makes the agents and their loops from the queue file and from what is still followed. Nothing runs yet. */
export async function assemble(
  parts: AssemblyParts,
  queueFile: QueueFileResult,
  inUse: readonly ConfigInUse[],
): Promise<void> {
  const { context, ledger, loops } = parts;
  const { store } = ledger;
  const currentIds = new Map<string, number>();
  for (const config of queueFile.queues) {
    currentIds.set(
      config.name,
      await store.queues.configId(config.name, JSON.stringify(config), context.clock.now()),
    );
  }
  const runtimes = makeRuntimes(parts, queueFile.queues, currentIds, inUse);
  await ledger.load();
  const reports = new QueueReports(store.queues, context.clock);
  // Of a queue with several configurations only the current one speaks for it; a refused one has its errors to show.
  const speaks = ({ current, config }: QueueRuntime) =>
    current ||
    (queueFile.readable && !currentIds.has(config.name) && !queueFile.refused.includes(config.name));
  await reports.begin(
    runtimes.filter(speaks).map(({ config }) => config),
    queueFile,
  );
  const reconcilers = addConnectionLoops(parts, runtimes, currentIds);
  const sweepers = runtimes.map((runtime) =>
    addQueueLoops(parts, runtime, speaks(runtime) ? reports : undefined),
  );
  const known = new Set((await store.queues.all()).map(({ queue }) => queue));
  const progress = new Progress(context.clock);
  const commands = new CommandAgent(followed(context, progress), {
    queues: () => known,
    wakeSubmitter: (queue) => {
      loops.wake('submit', queue);
    },
    sweepNow: () => all(sweepers, (sweeper) => sweeper.sweep()),
    removeOrphans: () => all(reconcilers, (reconciler) => reconciler.removeOrphans()),
  });
  // An operator's pause counts before the first worker is submitted.
  await commands.carryOutControls();
  // Operators wait for an answer, also right after the disk was full.
  loops.add({
    ...watched(parts, progress),
    name: 'commands',
    interval: commandInterval,
    longestPause: 1000,
    pass: () => commands.pass(),
  });
  addPruneLoop(parts, () => new Set(currentIds.values()));
}

function addPruneLoop(parts: AssemblyParts, currentConfigs: () => ReadonlySet<number>): void {
  const { settings, context, loops } = parts;
  const progress = new Progress(context.clock);
  const pruner = new PrunerAgent(followed(context, progress), (now) =>
    retentionAt(now, settings, currentConfigs()),
  );
  loops.add({
    ...watched(parts, progress),
    name: 'prune',
    interval: settings.sweeper.pruneInterval * 1000,
    pass: (signal) => pruner.pass(signal),
  });
}

/** The context of an agent whose loop notices whether it gets on. */
function followed(context: AgentContext, progress: Progress): AgentContext {
  return {
    ...context,
    progress: () => {
      progress.made();
    },
  };
}

function watched({ settings }: AssemblyParts, progress: Progress) {
  return { progress, stuckAfter: settings.master.pluginTimeout * 1000 + stuckGrace };
}

/** The current configurations, and those of workers whose queue was changed or removed since. */
function makeRuntimes(
  { wiring, context }: AssemblyParts,
  queues: readonly QueueConfig[],
  currentIds: ReadonlyMap<string, number>,
  inUse: readonly ConfigInUse[],
): QueueRuntime[] {
  const current = queues.map((config) => wiring.runtime(config, currentIds.get(config.name) ?? 0, true));
  const older = inUse
    .filter(({ config, configId }) => currentIds.get(config.name) !== configId)
    .flatMap(({ config, configId }) => {
      try {
        return [wiring.runtime(config, configId, false)];
      } catch (error) {
        context.log.error('workers cannot be followed', {
          queue: config.name,
          configId,
          error: messageOf(error),
        });
        return [];
      }
    });
  return [...current, ...older];
}

/** One monitor and one listing per connection, whoever shares it. */
function addConnectionLoops(
  parts: AssemblyParts,
  runtimes: readonly QueueRuntime[],
  currentIds: ReadonlyMap<string, number>,
): ReconcilerAgent[] {
  const { settings, context, writer, loops } = parts;
  const byName = new Map<string, ConnectedPlugins>();
  // Current configurations come first: an older one may hold credentials that were replaced.
  for (const { connected } of runtimes) {
    for (const [name, plugins] of connected) if (!byName.has(name)) byName.set(name, plugins);
  }
  return [...byName].map(([name, { connection, monitor, sweeper }]) => {
    const progress = new Progress(context.clock);
    const reconciler = new ReconcilerAgent(sweeper, connection, followed(context, progress), (queue) =>
      currentIds.get(queue),
    );
    const listing = loops.add({
      ...watched(parts, progress),
      name: `list ${name}`,
      interval: settings.sweeper.listInterval * 1000,
      pass: () => reconciler.pass(),
    });
    const options = {
      missingGrace: settings.monitor.missingGrace * 1000,
      onStranger: () => {
        listing.wake();
      },
    };
    const agent = new MonitorAgent(monitor, connection, context, options, writer);
    loops.add({ name: `monitor ${name}`, interval: monitorInterval, pass: (signal) => agent.pass(signal) });
    connection.onOpen(() => {
      loops.wakeAll('submit');
    });
    return reconciler;
  });
}

function addQueueLoops(
  parts: AssemblyParts,
  runtime: QueueRuntime,
  reports: QueueReports | undefined,
): SweeperAgent {
  const { settings, context, loops } = parts;
  const { submitter, sweeper } = settings;
  const { config, configId, current } = runtime;
  const title = current ? config.name : `${config.name} (configuration ${configId})`;
  const submitProgress = new Progress(context.clock);
  const submitAgent = new SubmitterAgent(runtime, followed(context, submitProgress), {
    maxNewWorkers: submitter.maxNewWorkers,
    // A little less than the pause between passes, which is jittered.
    cycle: submitter.sleepTime * 900,
    report: async (reasons) => reports?.report(config, reasons),
  });
  const sweepProgress = new Progress(context.clock);
  const sweepAgent = new SweeperAgent(runtime, followed(context, sweepProgress), {
    keep: {
      finished: sweeper.keepFinished * hour,
      failed: sweeper.keepFailed * hour,
      cancelled: sweeper.keepCancelled * hour,
      missed: sweeper.keepMissed * hour,
    },
  });
  loops.addForQueue('submit', config.name, {
    ...watched(parts, submitProgress),
    name: `submit ${title}`,
    interval: submitter.sleepTime * 1000,
    pass: () => submitAgent.pass(),
  });
  loops.addForQueue('sweep', config.name, {
    ...watched(parts, sweepProgress),
    name: `sweep ${title}`,
    interval: sweeper.sleepTime * 1000,
    pass: (signal) => sweepAgent.pass(signal),
  });
  return sweepAgent;
}

/** Side by side: a dead backend delays and fails only its own part. */
async function all<T>(items: readonly T[], count: (item: T) => Promise<number>): Promise<SweepResult> {
  const results = await Promise.allSettled(items.map(count));
  return {
    count: results.reduce((sum, result) => sum + (result.status === 'fulfilled' ? result.value : 0), 0),
    errors: results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : [])),
  };
}

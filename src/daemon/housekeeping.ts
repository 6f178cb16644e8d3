import { CommandAgent, type CommandTargets, type SweepResult } from '../agents/commands/command-agent.ts';
import { Progress } from '../agents/loop.ts';
import { PrunerAgent, retentionAt } from '../agents/sweeping/pruner-agent.ts';
import type { ReconcilerAgent } from '../agents/reconciling/reconciler-agent.ts';
import type { SweeperAgent } from '../agents/sweeping/sweeper-agent.ts';
import { hour } from '../util/duration.ts';
import { messageOf } from '../worker/errors.ts';
import type { Sharing } from './sharing/sharing.ts';
import { type LoopParts, stuckAfter, watched } from './queue-loops.ts';

/** The agents and queues that commands act on, as they are when a command comes. */
export interface Housekept extends Pick<CommandTargets, 'queues' | 'leads'> {
  sweepers(): readonly SweeperAgent[];
  reconcilers(): readonly ReconcilerAgent[];
  /** The part of this daemon, where several share the factory. */
  readonly sharing?: Pick<Sharing, 'holdsFactory' | 'queuesElsewhere'> | undefined;
}

/** How often thresher looks whether an operator left something, ms: the look costs microseconds, and no query. */
const commandInterval = 50;
/** So long an `Idempotency-Key` counts at least, ms. */
const keyTime = 7 * 24 * hour;

/** Makes the loop that carries out what operators ask. */
export function makeCommandLoop(parts: LoopParts, kept: Housekept): CommandAgent {
  const { context, loops } = parts;
  const { sharing } = kept;
  const alone = (result: SweepResult): SweepResult =>
    sharing === undefined ? result : { ...result, kept: [...result.kept, ...whoElse(sharing)] };
  const commands = new CommandAgent(context, {
    queues: () =>
      sharing === undefined ? kept.queues() : new Set([...kept.queues(), ...sharing.queuesElsewhere]),
    leads: (worker) => kept.leads(worker),
    wakeSubmitter: (queue) => {
      loops.wake('submit', queue);
    },
    sweepNow: async () => {
      const sweepers = kept.sweepers();
      const result = await all(sweepers, (sweeper) => sweeper.sweep());
      return alone({ ...result, kept: sweepers.flatMap((sweeper) => sweeper.kept ?? []) });
    },
    removeOrphans: async () =>
      alone(await all(kept.reconcilers(), (reconciler) => reconciler.removeOrphans())),
    ...(sharing && {
      shared: {
        isInCharge: () => sharing.holdsFactory,
        steeredElsewhere: () => {
          loops.wakeAll('submit');
        },
      },
    }),
  });
  loops.add({
    name: 'commands',
    interval: commandInterval,
    stuckAfter: stuckAfter(parts),
    // Operators wait for an answer, also right after the disk was full.
    longestPause: 1000,
    pass: () => commands.pass(),
  });
  return commands;
}

/** The prune loop asks here which configurations stay, and ends those that are over. */
export interface Pruning {
  /** The configurations that run or are followed; undefined: none may be deleted. */
  currentConfigs(): ReadonlySet<number> | undefined;
  /** Whether rows are deleted here, and not by another daemon of the factory. */
  isHere(): boolean;
  /** Ends the loops of configurations that are over. */
  endUnused(): Promise<void>;
  /** Drops news that no source took for too long: rows of their workers wait for it. */
  dropOldNews(): Promise<void>;
}

/** Makes the loop that ends what no worker needs any more, and deletes old rows. */
export function makePruneLoop(parts: LoopParts, pruning: Pruning): void {
  const { settings, context, loops } = parts;
  const progress = new Progress(context.clock);
  const retention = (now: number) => retentionAt(now, settings, pruning.currentConfigs());
  const pruner = new PrunerAgent({ ...context, progress }, retention);
  loops.add({
    ...watched(parts, progress),
    name: 'prune',
    interval: settings.sweeper.pruneInterval * 1000,
    pass: async (signal) => {
      await pruning.endUnused();
      if (!pruning.isHere()) return;
      await pruning.dropOldNews();
      progress.made();
      await pruner.pass(signal);
      // Those whose workers were deleted, now or before.
      const now = context.believed.now();
      await context.store.requests.prune(now - settings.sweeper.keepRows * hour, now - keyTime);
    },
  });
}

/** The daemon that carries out a command reaches its own queues alone. */
function whoElse({ queuesElsewhere }: Pick<Sharing, 'queuesElsewhere'>): string[] {
  const { size } = queuesElsewhere;
  return size === 0 ? [] : [`${size} queues are with other daemons, which sweep them in their own time`];
}

/** Side by side: a dead backend delays and fails only its own part. */
async function all<T>(items: readonly T[], count: (item: T) => Promise<number>): Promise<SweepResult> {
  const results = await Promise.allSettled(items.map(count));
  return {
    count: results.reduce((sum, result) => sum + (result.status === 'fulfilled' ? result.value : 0), 0),
    kept: [],
    errors: results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : [])),
  };
}

import { Progress } from '../agents/loop.ts';
import type { Loop } from '../agents/loop.ts';
import type { QueueRuntime } from '../agents/queue-runtime.ts';
import { SubmitterAgent } from '../agents/submission/submitter-agent.ts';
import { SweeperAgent } from '../agents/sweeping/sweeper-agent.ts';
import type { Settings } from '../config/settings/settings-schema.ts';
import { hour } from '../util/duration.ts';
import type { Reason } from '../worker/reason.ts';
import { type AgentContext, contextFor } from './agent-context.ts';
import type { LoopSet } from './loop-set.ts';

export interface LoopParts {
  readonly settings: Settings;
  readonly context: AgentContext;
  readonly loops: LoopSet;
}

/** One configuration of a queue at work: its agents in their loops. */
export interface QueueLoops {
  readonly runtime: QueueRuntime;
  readonly sweeper: SweeperAgent;
  readonly all: readonly Loop[];
}

/** The time beyond one call of a plugin after which a pass counts as stuck: the database's busy time, and more, ms. */
export const stuckGrace = 60_000;

/** How long a pass of bounded calls may go without progress before it counts as stuck, ms. */
export function stuckAfter({ settings }: Pick<LoopParts, 'settings'>): number {
  return settings.master.pluginTimeout * 1000 + stuckGrace;
}

/** Options of a loop whose passes consist of calls that are bounded in time. */
export function watched(parts: LoopParts, progress: Progress) {
  return { progress, stuckAfter: stuckAfter(parts) };
}

/** Makes the loops of one configuration of a queue; they are not started yet. */
export function makeQueueLoops(
  parts: LoopParts,
  runtime: QueueRuntime,
  report: (reasons: readonly Reason[]) => Promise<void>,
): QueueLoops {
  const { settings, context, loops } = parts;
  const { submitter, sweeper } = settings;
  const { config, configId, current } = runtime;
  const title = current ? config.name : `${config.name} (configuration ${configId})`;
  const submitProgress = new Progress(context.clock);
  const submitAgent = new SubmitterAgent(runtime, contextFor(context, submitProgress), {
    maxNewWorkers: submitter.maxNewWorkers,
    // A little less than the pause between passes, which is jittered.
    cycle: submitter.sleepTime * 900,
    blackHole: {
      lifetime: submitter.blackHoleLifetime * 1000,
      workers: submitter.blackHoleWorkers,
      pause: submitter.blackHolePause * 1000,
    },
    report,
  });
  const sweepProgress = new Progress(context.clock);
  const sweepAgent = new SweeperAgent(runtime, contextFor(context, sweepProgress), {
    keep: {
      finished: sweeper.keepFinished * hour,
      failed: sweeper.keepFailed * hour,
      cancelled: sweeper.keepCancelled * hour,
      missed: sweeper.keepMissed * hour,
    },
  });
  const submitting = loops.addForQueue('submit', config.name, {
    ...watched(parts, submitProgress),
    name: `submit ${title}`,
    interval: submitter.sleepTime * 1000,
    pass: async () => {
      const nextIn = await submitAgent.pass();
      if (nextIn !== undefined) submitting.wakeIn(nextIn);
    },
  });
  const sweeping = loops.addForQueue('sweep', config.name, {
    ...watched(parts, sweepProgress),
    name: `sweep ${title}`,
    interval: sweeper.sleepTime * 1000,
    pass: (signal) => sweepAgent.pass(signal),
  });
  return { runtime, sweeper: sweepAgent, all: [submitting, sweeping] };
}

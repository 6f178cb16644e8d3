import { type Loop, Progress } from '../agents/loop.ts';
import { MonitorAgent, type MonitorOptions } from '../agents/observation/monitor-agent.ts';
import type { ObservationWriter } from '../agents/observation/observation-writer.ts';
import type { ConnectedPlugins } from '../agents/queue-runtime.ts';
import { ReconcilerAgent, type ReconcilerOptions } from '../agents/reconciling/reconciler-agent.ts';
import { contextFor } from './agent-context.ts';
import { type LoopParts, watched } from './queue-loops.ts';

/** A connection at work: one monitor and one listing for all queues that share it. */
export interface ConnectionLoops {
  readonly reconciler: ReconcilerAgent;
  readonly all: readonly Loop[];
}

/** Between a monitor's end and its next start when it did not fail, ms. */
const monitorInterval = 1000;

/** Makes the loops of a connection; they are not started yet. */
export function makeConnectionLoops(
  parts: LoopParts & { readonly writer: ObservationWriter },
  name: string,
  { connection, monitor, sweeper }: ConnectedPlugins,
  { homes, isFollowed }: Pick<ReconcilerOptions, 'homes'> & Pick<MonitorOptions, 'isFollowed'>,
): ConnectionLoops {
  const { settings, context, writer, loops } = parts;
  const progress = new Progress(context.clock);
  const options = { missingGrace: settings.monitor.missingGrace * 1000, isFollowed };
  const agent = new MonitorAgent(monitor, connection, { ...contextFor(context), writer }, options);
  const reconciler = new ReconcilerAgent(sweeper, connection, contextFor(context, progress), {
    homes,
    notListed: (workerIds) => {
      agent.suspect(workerIds);
    },
  });
  const listing = loops.add({
    ...watched(parts, progress),
    name: `list ${name}`,
    interval: settings.sweeper.listInterval * 1000,
    pass: () => reconciler.pass(),
  });
  const monitoring = loops.add({
    name: `monitor ${name}`,
    interval: monitorInterval,
    pass: (signal) => agent.pass(signal),
  });
  return { reconciler, all: [listing, monitoring] };
}

import { type Loop, Progress } from '../agents/loop.ts';
import { MonitorAgent } from '../agents/monitor.ts';
import type { ObservationWriter } from '../agents/observations.ts';
import type { ConnectedPlugins } from '../agents/queue-runtime.ts';
import { ReconcilerAgent, type ReconcilerOptions } from '../agents/reconciler.ts';
import { followed, type LoopParts, watched } from './queue-loops.ts';

/** A connection at work: one monitor and one listing, whoever shares it. */
export interface ConnectionLoops {
  readonly reconciler: ReconcilerAgent;
  readonly all: readonly Loop[];
}

/** Between a monitor's end and its next start when it did not fail, ms. */
const monitorInterval = 1000;

/** Makes the loops of a connection; they are not started yet. `homes` gives configurations of queues that lead to it. */
export function makeConnectionLoops(
  parts: LoopParts & { readonly writer: ObservationWriter },
  name: string,
  { connection, monitor, sweeper }: ConnectedPlugins,
  homes: ReconcilerOptions['homes'],
): ConnectionLoops {
  const { settings, context, writer, loops } = parts;
  const progress = new Progress(context.clock);
  const options = {
    missingGrace: settings.monitor.missingGrace * 1000,
    onStranger: () => {
      listing.wake();
    },
  };
  const agent = new MonitorAgent(monitor, connection, context, options, writer);
  const reconciler = new ReconcilerAgent(sweeper, connection, followed(context, progress), {
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
  connection.onOpen(() => {
    loops.wakeAll('submit');
  });
  return { reconciler, all: [listing, monitoring] };
}

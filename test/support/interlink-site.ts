import { join } from 'node:path';
import { InterlinkClient } from './interlink-client.ts';
import { type RunningDaemon, Site, untilSaid } from './site.ts';

/** Directory of the sidecar, below the site. */
export const dataRoot = 'interlink';

export function interlinkSite(options: Record<string, unknown> = {}): Site {
  const module = join(import.meta.dirname, 'interlink-shell-source.ts');
  return new Site({
    queues: {
      pods: {
        demand: 'interlink-shell',
        maxWorkers: 500,
        nQueueLimitWorker: 500,
        maxNewWorkersPerCycle: 500,
      },
    },
    settings: {
      sources: {
        'interlink-shell': {
          module,
          socket: 'sidecar.sock',
          dataRoot,
          sharedDataRoot: true,
          lookInterval: 0.2,
          ...options,
        },
      },
    },
  });
}

export async function untilListening(site: Site, daemon: RunningDaemon): Promise<InterlinkClient> {
  await untilSaid(daemon, 'interLink is answered');
  return new InterlinkClient({ socketPath: site.path('sidecar.sock') });
}

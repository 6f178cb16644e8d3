import type { Command } from 'commander';
import { askDaemon, requireQueue } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';

export function addPause(command: Command, environment: Environment): void {
  command
    .argument('<queue>', 'queue name')
    .requiredOption('--reason <text>', 'the reason, which `thresher queues` and the page show')
    .action(async (queue: string, { reason }: { reason: string }) => {
      const request = { kind: 'pause', queue, reason } as const;
      await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, request, (store) =>
        requireQueue(store, queue),
      );
    });
}

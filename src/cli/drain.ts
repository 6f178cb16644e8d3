import type { Command } from 'commander';
import { askDaemon, requireQueue } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';

export function addDrain(command: Command, environment: Environment): void {
  command
    .argument('<queue>', 'queue name')
    .option(
      '--reason <text>',
      'the reason, which `thresher queues` and the page show',
      'drained by an operator',
    )
    .action(async (queue: string, { reason }: { reason: string }) => {
      const request = { kind: 'drain', queue, reason } as const;
      await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, request, (store) =>
        requireQueue(store, queue),
      );
    });
}

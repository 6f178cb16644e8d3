import type { Command } from 'commander';
import { askDaemon, requireQueue } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';

export function addPause(program: Command, environment: Environment): void {
  program
    .command('pause')
    .description('submit no new workers to a queue; survives restarts')
    .argument('<queue>', 'queue name')
    .requiredOption('--reason <text>', 'why: shown to everybody who asks')
    .action(async (queue: string, { reason }: { reason: string }, command: Command) => {
      const request = { kind: 'pause', queue, reason } as const;
      await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, request, (store) =>
        requireQueue(store, queue),
      );
    });
}

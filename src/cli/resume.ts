import type { Command } from 'commander';
import { askDaemon, requireQueue } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';

export function addResume(program: Command, environment: Environment): void {
  program
    .command('resume')
    .description('end a pause or a drain')
    .argument('<queue>', 'queue name')
    .action(async (queue: string, _options: object, command: Command) => {
      const request = { kind: 'resume', queue } as const;
      await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, request, (store) =>
        requireQueue(store, queue),
      );
    });
}

import type { Command } from 'commander';
import { askDaemon } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';

export function addSweep(program: Command, environment: Environment): void {
  program
    .command('sweep')
    .description('remove now what ended workers left and whose keep time is over')
    .action(async (_options: object, command: Command) => {
      await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, {
        kind: 'sweep',
        orphans: false,
      });
    });
}

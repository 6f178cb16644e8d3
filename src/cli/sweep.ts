import type { Command } from 'commander';
import { askDaemon } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';

export function addSweep(command: Command, environment: Environment): void {
  command.action(async () => {
    await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, {
      kind: 'sweep',
      orphans: false,
    });
  });
}

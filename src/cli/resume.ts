import type { Command } from 'commander';
import { askDaemon, requireQueue } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';

export function addResume(command: Command, environment: Environment): void {
  command.argument('<queue>', 'queue name').action(async (queue: string) => {
    const request = { kind: 'resume', queue } as const;
    await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, request, (store) =>
      requireQueue(store, queue),
    );
  });
}

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

export function addResume(command: Command, environment: Environment): void {
  command.argument('<queue>', 'queue name').action(async (queue: string) => {
    const request = { kind: 'resume', queue } as const;
    await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, request, (store) =>
      requireQueue(store, queue),
    );
  });
}

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

export function addSweep(command: Command, environment: Environment): void {
  command.action(async () => {
    await askDaemon(command.optsWithGlobals<GlobalOptions>(), environment, {
      kind: 'sweep',
      orphans: false,
    });
  });
}

import { Argument, type Command } from 'commander';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';

/** How many worker ids are offered, the newest. */
const offeredWorkers = 100;

/** The shell asks the program itself for these while a user types. */
const answers = {
  queues: (global: GlobalOptions) =>
    withStore(global, 'read', async ({ store }) => (await store.queues.all()).map(({ queue }) => queue)),
  workers: (global: GlobalOptions) =>
    withStore(global, 'read', async ({ store }) =>
      (await store.workers.list({ limit: offeredWorkers })).map(({ workerId }) => String(workerId)),
    ),
  requests: (global: GlobalOptions) =>
    withStore(global, 'read', async ({ store }) =>
      (await store.requests.list({ limit: offeredWorkers })).map(({ id }) => id),
    ),
} as const satisfies Record<string, (global: GlobalOptions) => Promise<string[]>>;

/** `__complete`: what the script of `completion` asks for. */
export function addComplete(command: Command, environment: Environment): void {
  command
    .addArgument(new Argument('<what>').choices(Object.keys(answers)))
    .action(async (what: keyof typeof answers) => {
      for (const line of await answers[what](command.optsWithGlobals<GlobalOptions>()))
        environment.out.write(`${line}\n`);
    });
}

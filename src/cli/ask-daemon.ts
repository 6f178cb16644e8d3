import { daemonOn } from '../daemon/reader.ts';
import type { StateDir } from '../daemon/state-dir.ts';
import type { Command } from '../store/commands.ts';
import type { Store } from '../store/store.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';

/** How long an answer is waited for, ms; a sweep of many workers may take longer and goes on. */
const patience = 30_000;
const pollInterval = 50;

/**
 * Leaves a command for the daemon and waits for its answer; without a daemon it is carried out at the next start.
 * `check` may refuse it before.
 */
export async function askDaemon(
  options: GlobalOptions,
  environment: Environment,
  command: Command,
  check: (store: Store) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const { out } = environment;
  await withStore(options, 'write', async ({ store, dir }) => {
    await check(store);
    const id = await leave(store, command, environment.clock.now());
    if ((await daemonOn(store, dir)) === undefined) {
      out.write('no daemon is running: this will be done when it starts\n');
      return;
    }
    const result = await answer(store, dir, id, environment);
    if (result === undefined) {
      out.write('the daemon has not answered yet: it goes on with this\n');
      return;
    }
    if (!result.ok) throw new ThresherError(result.code ?? 'command-refused', result.message);
    out.write(`${result.message}\n`);
  });
}

/** A sweep that waits already (from cron, while no daemon runs) is not left twice. Everything else keeps its order. */
async function leave(store: Store, command: Command, at: number): Promise<number> {
  const waiting = command.kind === 'sweep' ? await store.commands.open() : [];
  const same = waiting.find((open) => JSON.stringify(open.command) === JSON.stringify(command));
  return same?.id ?? (await store.commands.add(command, at));
}

async function answer(store: Store, dir: StateDir, id: number, { clock }: Environment) {
  const deadline = clock.monotonic() + patience;
  while (clock.monotonic() < deadline && (await daemonOn(store, dir)) !== undefined) {
    const result = await store.commands.result(id);
    if (result !== undefined) return result;
    await clock.sleep(pollInterval);
  }
  return store.commands.result(id);
}

/** @throws ThresherError `no-such-queue` for a queue that no daemon ever reported. */
export async function requireQueue(store: Store, queue: string): Promise<void> {
  const names = (await store.queues.all()).map((report) => report.queue);
  if (!names.includes(queue)) {
    throw new ThresherError(
      'no-such-queue',
      `there is no queue ${queue}; there are ${names.join(', ') || 'none'}`,
    );
  }
}

import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../worker/errors.ts';

/** Something that is told to the server from time to time, and that nothing waits for. */
export interface BesideTask {
  readonly name: string;
  /** ms */
  readonly interval: number;
  turn(signal: AbortSignal): Promise<void>;
}

/** Runs tasks beside the link, each at its own pace, until `signal` aborts: one that fails or hangs delays nothing else. */
export async function runBeside(
  tasks: readonly BesideTask[],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  const isOver = () => signal.aborted;
  const run = async (task: BesideTask) => {
    while (!isOver()) {
      try {
        await task.turn(signal);
      } catch (error) {
        // An error on the way to the end is none.
        if (isOver()) return;
        log.warn('a task beside the PanDA link failed', { task: task.name, error: messageOf(error) });
      }
      await clock.sleep(task.interval, signal);
    }
  };
  await Promise.all(tasks.map(run));
}

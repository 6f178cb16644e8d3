import type { LoopHealth } from '../../agents/loop.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { within } from '../../util/within.ts';
import type { RunningQueues } from '../running-queues.ts';
import type { RunConfiguration } from '../configuration.ts';
import { judgeHealth } from '../supervision/health.ts';
import type { Service, ServicePart } from './service.ts';

export interface QueueServiceParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly runningQueues: RunningQueues;
  readonly loops: { stop(): Promise<void>; readonly health: readonly LoopHealth[] };
  /** Gives up all calls of plugins under way. */
  readonly giveUp: AbortController;
  /** The configuration that it begins with. */
  readonly read: RunConfiguration;
}

/** How long a stop waits for calls that were given up, ms. */
const lastWait = 2000;

/** The queues with all their loops. */
export class QueueService implements Service {
  readonly name = 'queues';
  readonly required = true;
  readonly #parts: QueueServiceParts;

  constructor(parts: QueueServiceParts) {
    this.#parts = parts;
  }

  begin(): Promise<void> {
    return this.#parts.runningQueues.begin(this.#parts.read);
  }

  reload(read: RunConfiguration): Promise<void> {
    return this.#parts.runningQueues.reload(read);
  }

  async stop(end: number): Promise<void> {
    const { clock, log, loops, giveUp } = this.#parts;
    const time = Math.max(0, end - clock.monotonic());
    const stopped = loops.stop();
    if (await within(clock, time, stopped)) return;
    log.warn('calls under way are given up', { waited: time / 1000 });
    giveUp.abort();
    await within(clock, lastWait, stopped);
  }

  health(): readonly ServicePart[] {
    const { stuck } = judgeHealth(this.#parts.loops.health);
    const loops = stuck.map(({ loop, seconds }) => `${loop} (${seconds} s)`).join(', ');
    const message = `these loops make no progress: ${loops}`;
    const trouble = stuck.length === 0 ? undefined : { code: 'loop-stuck', message };
    return [{ name: this.name, trouble }];
  }
}

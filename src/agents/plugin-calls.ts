import type { Clock } from '../util/clock.ts';
import { requireLease } from './lease.ts';
import { type Deadline, withDeadline } from '../util/deadline.ts';
import type { Progress } from './loop.ts';

export interface PluginCallOptions {
  readonly clock: Clock;
  /** Whether the daemon may act now. Default: always. */
  readonly mayAct?: () => boolean;
  /** For one call, ms. */
  readonly pluginTimeout: number;
  /** Aborts when calls under way are to be given up: later than the loops' own stop. */
  readonly giveUp: AbortSignal;
  /** Notes each call that came back: a pass is not stuck as long as its calls do. */
  readonly progress?: Progress;
}

/** How long a call that is over its time may take to bring in what it has done so far, ms. */
const bringIn = 1000;

/** Calls of plugins, each bounded in time. */
export class PluginCalls {
  readonly #options: PluginCallOptions;

  constructor(options: PluginCallOptions) {
    this.#options = options;
  }

  /** @throws ThresherError `plugin-timeout`, `lease-expired`: nothing was called; or what the plugin threw */
  async call<T>(what: string, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, pluginTimeout, giveUp, progress, mayAct } = this.#options;
    requireLease(mayAct);
    const deadline: Deadline = { clock, what, timeoutMs: pluginTimeout, graceMs: bringIn, signal: giveUp };
    return await withDeadline(deadline, call).finally(() => progress?.made());
  }
}

import type { Settings } from '../../config/settings/settings-schema.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Pruned, Retention } from '../../store/retention.ts';
import { type BelievedClock, nextTurn } from '../../util/clock.ts';
import { hour } from '../../util/duration.ts';
import { finalStatuses } from '../../worker/status.ts';
import type { AgentStore } from '../agent-store.ts';
import type { Progress } from '../loop.ts';

/** How long unused configurations and answered commands are kept, ms. */
const keepUnused = 24 * hour;

/**
 * Says which rows may be deleted from the database at `now`, ms UTC. A row outlives its sweep by two listings: one under way may still
 * show the worker, and one after it shows what the sweep left, which is an orphan only as long as there is a row.
 */
export function retentionAt(
  now: number,
  { sweeper, master }: Pick<Settings, 'sweeper' | 'master'>,
  currentConfigs: ReadonlySet<number> | undefined,
): Retention {
  const before = (hours: number) => now - Math.max(hours, sweeper.keepRows) * hour;
  return {
    endedBefore: {
      finished: before(sweeper.keepFinished),
      failed: before(sweeper.keepFailed),
      cancelled: before(sweeper.keepCancelled),
      missed: before(sweeper.keepMissed),
    },
    sweptBefore: now - 2 * (sweeper.listInterval + master.pluginTimeout) * 1000,
    unusedBefore: now - keepUnused,
    currentConfigs,
  };
}

export interface PrunerParts {
  readonly believed: Pick<BelievedClock, 'now'>;
  readonly log: Log;
  readonly store: Pick<AgentStore, 'retention' | 'payloads'>;
  readonly progress: Progress;
}

/** Deletes from the database what is over, a little at a time. */
export class PrunerAgent {
  readonly #parts: PrunerParts;
  /** Says which rows may be deleted at a time, ms UTC. */
  readonly #retention: (now: number) => Retention;
  #started = false;

  constructor(parts: PrunerParts, retention: (now: number) => Retention) {
    this.#parts = parts;
    this.#retention = retention;
  }

  /** The first pass does nothing: a start has enough to do, and after a restore an operator may want to look around. */
  async pass(signal: AbortSignal): Promise<void> {
    if (!this.#started) {
      this.#started = true;
      return;
    }
    const { store, believed, log, progress } = this.#parts;
    const pruned = await store.retention.prune(this.#retention(believed.now()), async () => {
      progress.made();
      await nextTurn();
      return !signal.aborted;
    });
    const wiped = await store.payloads.wipeUnneeded();
    if (wiped > 0) log.warn('wiped payloads that no worker needed', { payloads: wiped });
    if (prunedAnything(pruned)) {
      log.info('pruned the database', {
        ...pruned.workers,
        configs: pruned.configs,
        commands: pruned.commands,
      });
    }
  }
}

function prunedAnything({ workers, configs, commands }: Pruned): boolean {
  return configs + commands + finalStatuses.reduce((sum, status) => sum + workers[status], 0) > 0;
}

import type { Subscribe } from '../../agents/events.ts';
import type { LoopHealth } from '../../agents/loop.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { type Health, judgeHealth } from './health.ts';
import type { Notifier } from './notify.ts';

/** A daemon, as far as the watchdog looks at it. */
export interface Watched {
  readonly health: readonly LoopHealth[];
  readonly queueCount: number;
  readonly liveWorkers: number;
  readonly events: Subscribe;
}

export interface WatchdogOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly notifier: Pick<Notifier, 'alive' | 'status'>;
  /** WATCHDOG_USEC, ms; undefined without a watchdog. */
  readonly interval: number | undefined;
}

/** A watchdog is fed no more often than at this part of its interval: two feeds may be lost. */
const feedsPerInterval = 3;
/** Hundreds of loops pass every second: looks at all of them are at least so far apart, ms. */
const lookInterval = 1000;
/** A changed status is told so often, ms: each telling is a process. */
const statusInterval = 30_000;

/**
 * Feeds systemd's watchdog from the passes of the loops: no timer that would go on when they do not. Without any feed
 * systemd kills the daemon and starts it again; workers go on.
 */
export function watchOver(daemon: Watched, options: WatchdogOptions): void {
  const { clock, log, notifier, interval } = options;
  const feedEvery = (interval ?? Infinity) / feedsPerInterval;
  const pause = Math.min(lookInterval, feedEvery / 2);
  let lookedAt = -Infinity;
  let fedAt = -Infinity;
  let told = { at: -Infinity, status: '' };
  let stuck = new Set<string>();

  daemon.events.on('passEnded', () => {
    const now = clock.monotonic();
    if (now - lookedAt < pause) return;
    lookedAt = now;
    const health = judgeHealth(daemon.health);
    const changed = logChanges(log, stuck, health);
    stuck = new Set(health.stuck.map(({ loop }) => loop));
    const status = describeStatus(daemon, health);
    if (interval !== undefined && health.ok && now - fedAt >= feedEvery) {
      notifier.alive(status);
      fedAt = now;
      told = { at: now, status };
    } else if (changed || (status !== told.status && now - told.at >= statusInterval)) {
      notifier.status(status);
      told = { at: now, status };
    }
  });
}

/** The daemon in one line, for `systemctl status`. */
export function describeStatus(
  { queueCount, liveWorkers }: Pick<Watched, 'queueCount' | 'liveWorkers'>,
  { stuck }: Health,
): string {
  const loops = stuck.map(({ loop, seconds }) => `${loop} (${seconds} s)`).join(', ');
  const counts = `${counted(queueCount, 'queue')}, ${counted(liveWorkers, 'live worker')}`;
  return stuck.length === 0 ? counts : `${counts}; stuck: ${loops}`;
}

/** Each loop once when it gets stuck, and once when it goes on. @returns whether there was anything to say */
function logChanges(log: Log, before: ReadonlySet<string>, { stuck }: Health): boolean {
  const fresh = stuck.filter(({ loop }) => !before.has(loop));
  const still = new Set(stuck.map(({ loop }) => loop));
  const freed = [...before].filter((loop) => !still.has(loop));
  for (const { loop, seconds } of fresh)
    log.error('a loop is stuck; the watchdog is not fed', { loop, seconds });
  for (const loop of freed) log.info('a loop that was stuck goes on', { loop });
  return fresh.length + freed.length > 0;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

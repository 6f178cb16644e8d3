import type { Log } from '../../plugins/contracts/index.ts';
import type { HtcJobStatus } from '../../clients/htcjob/resource.ts';
import type { EventWriter } from './events.ts';
import { type Leftover, whileDeleting } from './status.ts';
import type { Tracked } from './tracked.ts';

export interface NoticesParts {
  readonly factoryId: string;
  readonly log: Log;
  readonly events: Pick<EventWriter, 'write'>;
}

/** A deletion that waits says why after so long, and again after so long where that is another by then, ms. */
const deletionSays = { first: 10_000, again: 30_000 };

/** Tells users and administrators of resources that stand still. */
export class Notices {
  readonly #parts: NoticesParts;
  /** Other factories that the log told of. */
  readonly #factories = new Set<string>();

  constructor(parts: NoticesParts) {
    this.#parts = parts;
  }

  /** An object that an older schema let through. The server may take no status of it. */
  flawed(tracked: Tracked, flaw: string, signal: AbortSignal): void {
    if (!this.#say(tracked, 'Invalid', flaw, signal)) return;
    this.#parts.log.warn('an object is no HTCJob as its schema has it', { htcjob: tracked.name, why: flaw });
  }

  /** Jobs of another factory are known to it alone. */
  foreign(tracked: Tracked, factory: string, signal: AbortSignal): void {
    const { log, factoryId } = this.#parts;
    if (!this.#factories.has(factory))
      log.warn('HTCJobs of another factory are left alone', { factory, htcjob: tracked.name });
    this.#factories.add(factory);
    if (tracked.isFinished && !tracked.isDeleting) return;
    const what = tracked.isDeleting ? 'lets it go' : 'brings it on';
    const message = `its jobs are those of factory ${factory}, which alone ${what}; the operator now is factory ${factoryId}`;
    this.#say(tracked, 'OtherFactory', message, signal);
  }

  /** One that waits for its import, and whose status gives another reason. */
  unimported(tracked: Tracked, reason: string, message: string, signal: AbortSignal): void {
    if (!this.#say(tracked, reason, message, signal)) return;
    this.#parts.log.warn('a HTCJob waits for its import, and its status has a reason of another writer', {
      htcjob: tracked.name,
      why: message,
    });
  }

  /**
   * A backend that is away may keep a deleted resource for long.
   * @returns the status that says so, where one is due
   */
  kept(
    tracked: Tracked,
    left: Leftover,
    at: { readonly now: number; readonly monotonic: number },
  ): HtcJobStatus | undefined {
    const { since, said } = tracked.deletion ?? { since: at.monotonic, said: undefined };
    tracked.deletion = { since, said };
    if (at.monotonic - since < deletionSays.first) return undefined;
    if (said !== undefined && at.monotonic - said < deletionSays.again) return undefined;
    tracked.deletion = { since, said: at.monotonic };
    return whileDeleting(tracked.status ?? {}, left, at.now);
  }

  /** @returns whether it was not said before */
  #say(tracked: Tracked, reason: string, message: string, signal: AbortSignal): boolean {
    if (tracked.said === message) return false;
    tracked.said = message;
    this.#parts.events.write(tracked.meta, [{ type: 'Warning', reason, message }], signal);
    return true;
  }
}

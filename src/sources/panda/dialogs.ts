import type { Dialog, PandaApi } from '../../clients/panda/api.ts';
import type { PandaOutcome } from '../../clients/panda/outcome.ts';
import type { LoggedTrouble, OwnServices } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';

/** Harvester's levels: messages of this level and of those after it are sent. */
export type DialogLevel = 'INFO' | 'WARNING' | 'ERROR';

export interface DialogParts {
  readonly api: Pick<PandaApi, 'addDialogs'>;
  readonly clock: Pick<Clock, 'now'>;
  /** Absent: the daemon tells of no warnings. */
  readonly take: OwnServices['takeWarnings'];
  readonly level: DialogLevel;
  /** Messages in one call, and in one minute. */
  readonly most: number;
  readonly note: (outcome: PandaOutcome<unknown>) => void;
}

const levels = { warn: 'WARNING', error: 'ERROR' } as const;

/**
 * Tells the operators of the server the warnings and errors of this daemon, those that say the same together. It is best effort: those
 * of a call that fails are sent once more with the next, and what finds no room in the daemon's board is counted there.
 */
export class Dialogs {
  readonly #parts: DialogParts;
  #unsent: readonly Dialog[] = [];
  #lastId = 0;

  constructor(parts: DialogParts) {
    this.#parts = parts;
  }

  /** Sends what there is. Call it once a minute. */
  async turn(signal: AbortSignal): Promise<void> {
    const { api, take, level, most, note } = this.#parts;
    const isWanted = (trouble: LoggedTrouble) => level !== 'ERROR' || trouble.level === 'error';
    const room = Math.max(0, most - this.#unsent.length);
    const fresh = room === 0 ? [] : (take?.(room) ?? []).filter(isWanted);
    const dialogs = [...this.#unsent, ...fresh.map((trouble) => this.#dialogOf(trouble))];
    if (dialogs.length === 0) return;
    const outcome = await api.addDialogs(dialogs, signal);
    note(outcome);
    const again = outcome.kind === 'failed' && this.#unsent.length === 0;
    this.#unsent = again ? dialogs : [];
  }

  #dialogOf({ level, message, about, facts, count, at }: LoggedTrouble): Dialog {
    const times = count > 1 ? ` (${count} times)` : '';
    const details = facts === '' ? '' : `: ${facts}`;
    return {
      diagID: this.#nextId(),
      moduleName: 'thresher',
      identifier: about === '' ? 'factory' : about,
      creationTime: at,
      messageLevel: levels[level],
      diagMessage: `${message}${times}${details}`,
    };
  }

  /**
   * The server replaces a message of the same id, so that ids begin anew with no start. Seconds fit its column of 11 digits, and grow
   * faster than the fifty messages of a minute.
   */
  #nextId(): number {
    this.#lastId = Math.max(this.#lastId + 1, Math.floor(this.#parts.clock.now() / 1000));
    return this.#lastId;
  }
}

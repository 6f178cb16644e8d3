import type { CredentialManager, CredentialState, RenewOutcome } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { type Deadline, withDeadline } from '../../util/deadline.ts';
import { toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { Emit } from '../events.ts';
import { type CredentialBoard, nameOf } from './credential-board.ts';
import type { Log } from '../../plugins/contracts/index.ts';

export interface CredentialAgentOptions {
  /** Shown with its credentials. */
  readonly name: string;
  /** Between renewals where no file changed, ms. */
  readonly interval: number;
  /** A credential that ends within this is warned about, ms. */
  readonly warnLifetime: number;
  /** For one call of a manager, ms. */
  readonly timeout: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly giveUp: AbortSignal;
  readonly events: Emit;
}

/** Pauses after renewals that failed, ms, doubling. A file that changes ends them. */
const pauses = { first: 5000, longest: 600_000 };
/** Between two passes where nothing failed, ms. */
const least = 10_000;
/** Warnings of the same trouble are this far apart, ms. */
const sameAgain = 3_600_000;

/** Keeps the credentials of one manager fresh, and says what is known of them. */
export class CredentialAgent {
  readonly #manager: CredentialManager;
  readonly #board: CredentialBoard;
  readonly #options: CredentialAgentOptions;
  #fingerprint: string | undefined;
  /** Monotonic ms. */
  #nextAt = -Infinity;
  /** By the wall clock, ms UTC: credentials end by it, also where it jumps. */
  #dueAt = -Infinity;
  #failures = 0;
  /** Keys of the last pass's warnings. */
  readonly #said = new Set<string>();
  readonly #told = new Map<string, { readonly text: string; readonly at: number }>();

  constructor(manager: CredentialManager, board: CredentialBoard, options: CredentialAgentOptions) {
    this.#manager = manager;
    this.#board = board;
    this.#options = options;
  }

  /** A look, which is cheap where nothing changed and nothing is due. Never throws: what is the matter is on the board. */
  async pass(): Promise<void> {
    const { clock } = this.#options;
    const fingerprint = await this.#look();
    const changed = fingerprint !== this.#fingerprint;
    if (!changed && clock.monotonic() < this.#nextAt && clock.now() < this.#dueAt) return;
    if (changed) this.#failures = 0;
    this.#said.clear();
    const outcomes = await this.#renew();
    const states = await this.#inspect(outcomes);
    // As it was before: what was changed meanwhile, by us too, is looked at next time.
    this.#fingerprint = fingerprint;
    const troubles = new Map(
      outcomes.flatMap((outcome) =>
        outcome.kind === 'failed' ? [[outcome.name, outcome.error] as const] : [],
      ),
    );
    // A credential that could not be looked at even once stays unknown, which keeps queues from using it.
    if (states !== undefined) {
      const { name: manager, events } = this.#options;
      if (this.#board.show(manager, states, troubles)) events.emit('credentialsImproved', { manager });
    }
    this.#tell(states ?? [], outcomes);
    const failed = states === undefined || troubles.size > 0 || states.some(({ kind }) => kind === 'broken');
    this.#failures = failed ? this.#failures + 1 : 0;
    const pause = Math.min(pauses.first * 2 ** Math.min(this.#failures - 1, 20), pauses.longest);
    const { interval } = this.#options;
    const wait = failed ? Math.min(pause, interval) : Math.min(interval, this.#soonest(states));
    this.#nextAt = clock.monotonic() + wait;
    this.#dueAt = clock.now() + wait;
  }

  /** A part of the time that the shortest-lived has left, ms, so that its manager is asked before it is due. */
  #soonest(states: readonly CredentialState[]): number {
    const now = this.#options.clock.now();
    const ends = states.flatMap((state) => (state.kind === 'there' ? (state.facts.expiresAt ?? []) : []));
    return Math.max(least, (Math.min(...ends) - now) / 8);
  }

  async #look(): Promise<string | undefined> {
    try {
      return await this.#call('look at files', async (signal) => this.#manager.fingerprint?.(signal));
    } catch {
      return undefined;
    }
  }

  async #renew(): Promise<readonly RenewOutcome[]> {
    try {
      return await this.#call('renewal', (signal) => this.#manager.renew({ force: false }, signal));
    } catch (error) {
      const reason = toReason(error);
      const mine = this.#board.all.filter(({ manager }) => manager === this.#options.name);
      if (mine.length === 0) this.#warn('renewal', 'credentials cannot be renewed', { ...reason });
      return mine.map(({ name }) => ({ kind: 'failed', name, error: reason }));
    }
  }

  async #inspect(outcomes: readonly RenewOutcome[]): Promise<readonly CredentialState[] | undefined> {
    try {
      return await this.#call('inspection', (signal) => this.#manager.inspect(signal));
    } catch (error) {
      const reason = toReason(error);
      this.#warn('inspection', 'credentials cannot be looked at', { ...reason });
      if (outcomes.length === 0) return undefined;
      // A credential that cannot be looked at is not known to be good.
      return outcomes.map(({ name }) => ({ kind: 'broken', name, error: reason }));
    }
  }

  #call<T>(what: string, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, timeout: timeoutMs, giveUp: signal, name } = this.#options;
    const deadline: Deadline = { clock, what: `${what} of ${name}`, timeoutMs, signal };
    return withDeadline(deadline, call);
  }

  #tell(states: readonly CredentialState[], outcomes: readonly RenewOutcome[]): void {
    const { log, name: manager, clock, warnLifetime } = this.#options;
    for (const outcome of outcomes) {
      const { name } = outcome;
      if (outcome.kind === 'renewed') log.info('credential renewed', { name, manager });
      if (outcome.kind === 'failed')
        this.#warn(`renew ${name}`, 'credential not renewed', { name, ...outcome.error });
    }
    for (const state of states) {
      const name = nameOf(state);
      if (state.kind === 'broken') {
        this.#warn(`state ${name}`, 'credential is not good', { name, ...state.error });
        continue;
      }
      for (const { code, message } of state.warnings)
        this.#warn(`${code} ${name}`, 'credential has a flaw', { name, code, message });
      const { expiresAt = Infinity } = state.facts;
      const left = expiresAt - clock.now();
      if (left < warnLifetime)
        this.#warn(`end ${name}`, 'credential ends soon', {
          name,
          expires: new Date(expiresAt).toISOString(),
        });
    }
    // A trouble that is over and comes again is news.
    for (const key of this.#told.keys()) if (!this.#said.has(key)) this.#told.delete(key);
  }

  #warn(key: string, message: string, facts: Record<string, unknown> & Partial<Reason>): void {
    const { log, clock, name: manager } = this.#options;
    this.#said.add(key);
    const text = JSON.stringify(facts);
    const told = this.#told.get(key);
    const now = clock.monotonic();
    if (told?.text === text && now - told.at < sameAgain) return;
    this.#told.set(key, { text, at: now });
    log.warn(message, { manager, ...facts });
  }
}

import type { PandaOutcome } from '../../clients/panda/outcome.ts';
import type { Log } from '../../plugins/contracts/index.ts';
import type { PandaCallFailure, PandaCallName } from '../../plugins/contracts/panda-status.ts';
import type { Clock } from '../../util/clock.ts';

/** Calls without which a queue gets no orders; the first one that fails says why. */
const callsOfOrders: readonly PandaCallName[] = ['commands', 'statistics', 'heartbeat', 'worker-id'];

/** The outcomes of the calls of the server: which fail now, since when and why. It logs each change once, not each failure. */
export class ServerHealth {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #failures = new Map<PandaCallName, PandaCallFailure>();
  readonly #lastAnswers = new Map<PandaCallName, number>();

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  note(call: PandaCallName, outcome: PandaOutcome<unknown>): void {
    const last = this.#failures.get(call);
    if (outcome.kind === 'ok') {
      this.#lastAnswers.set(call, this.#clock.now());
      this.#failures.delete(call);
      if (last !== undefined && this.#failures.size === 0)
        this.#log.info('the PanDA server does all that it is asked again', { call, since: last.since });
      return;
    }
    const { code, message } = outcome;
    const isKnown = [...this.#failures.values()].some((failure) => failure.code === code);
    this.#failures.set(call, { call, since: last?.since ?? this.#clock.now(), code, message });
    if (!isKnown)
      this.#log.warn('the PanDA server does not do what it is asked', { call, code, error: message });
  }

  get failures(): readonly PandaCallFailure[] {
    return [...this.#failures.values()];
  }

  /** When the server last answered each kind of call well, ms UTC. */
  get lastAnswers(): Readonly<Partial<Record<PandaCallName, number>>> {
    return Object.fromEntries(this.#lastAnswers);
  }

  /** Why no orders come, as far as the server is the reason. */
  get whyNoOrders(): PandaCallFailure | undefined {
    return callsOfOrders.map((call) => this.#failures.get(call)).find((failure) => failure !== undefined);
  }
}

/** Failures after which further calls of the same kind would only wait, too. */
const dead: ReadonlySet<string> = new Set([
  'panda-unreachable',
  'panda-no-answer',
  'panda-credentials',
  'panda-certificate',
]);

export function isDead(outcome: PandaOutcome<unknown>): boolean {
  return outcome.kind === 'failed' && dead.has(outcome.code);
}

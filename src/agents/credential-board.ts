import type { CredentialState } from '../plugins/contracts/index.ts';
import { isoTime } from '../util/clock.ts';
import type { Reason } from '../worker/reason.ts';

/** A credential as it was last seen, and who keeps it. */
export interface KnownCredential {
  readonly name: string;
  /** Name of its manager. */
  readonly manager: string;
  /** Undefined: not looked at yet. */
  readonly state: CredentialState | undefined;
  /** Why its last renewal failed, as long as it does. */
  readonly trouble?: Reason;
}

/** What is known of all credentials that somebody keeps or watches here. */
export class CredentialBoard {
  readonly #known = new Map<string, KnownCredential>();
  #onBetter: () => void = () => undefined;

  /** Called whenever one is good, or good for longer, that was not: somebody may be waiting to submit. */
  onBetter(tell: () => void): void {
    this.#onBetter = tell;
  }

  get all(): readonly KnownCredential[] {
    return [...this.#known.values()];
  }

  /** What a manager saw; what it no longer shows is forgotten. `troubles` by name. */
  show(manager: string, states: readonly CredentialState[], troubles: ReadonlyMap<string, Reason>): void {
    const before = new Map(this.#known);
    for (const [name, known] of before) if (known.manager === manager) this.#known.delete(name);
    let better = false;
    for (const state of states) {
      const name = nameOf(state);
      const trouble = troubles.get(name);
      this.#known.set(name, { name, manager, state, ...(trouble && { trouble }) });
      const earlier = before.get(name)?.state;
      better ||= endOf(state) > (earlier === undefined ? -Infinity : endOf(earlier));
    }
    if (better) this.#onBetter();
  }

  /** Who is about to look at these. */
  expect(manager: string, names: readonly string[]): void {
    for (const name of names)
      if (!this.#known.has(name)) this.#known.set(name, { name, manager, state: undefined });
  }

  forget(manager: string): void {
    for (const [name, known] of this.#known) if (known.manager === manager) this.#known.delete(name);
  }

  /**
   * Why nothing may be submitted with these, if so. Of one that nobody keeps here nothing is known, and nothing is said.
   * @param minLifetime ms
   */
  judge(names: readonly string[], minLifetime: number, now: number): Reason | undefined {
    for (const name of names) {
      const known = this.#known.get(name);
      const reason = known && judgeOne(known, minLifetime, now);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }
}

function judgeOne(
  { name, state, trouble }: KnownCredential,
  minLifetime: number,
  now: number,
): Reason | undefined {
  if (state === undefined) return { code: 'credential-unknown', message: `${name} was not looked at yet` };
  const why = trouble === undefined ? '' : `; its renewal fails: ${trouble.message}`;
  if (state.kind === 'broken') return { code: 'credential-bad', message: `${state.error.message}${why}` };
  const { expiresAt, notBefore = now } = state.facts;
  if (notBefore > now)
    return { code: 'credential-bad', message: `${name} is not valid before ${isoTime(notBefore)}${why}` };
  if (expiresAt === undefined || expiresAt - now >= minLifetime) return undefined;
  const seconds = Math.round((expiresAt - now) / 1000);
  const left =
    seconds <= 0
      ? 'has expired'
      : `ends in ${seconds} s, less than credmanager.minLifetime ${minLifetime / 1000} s`;
  return { code: 'credential-ending', message: `${name} ${left} (${isoTime(expiresAt)})${why}` };
}

export function nameOf(state: CredentialState): string {
  return state.kind === 'there' ? state.facts.name : state.name;
}

function endOf(state: CredentialState): number {
  return state.kind === 'there' ? (state.facts.expiresAt ?? Infinity) : -Infinity;
}

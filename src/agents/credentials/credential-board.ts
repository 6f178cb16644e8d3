import type { CredentialState, HeldCredential, NeededCredential } from '../../plugins/contracts/index.ts';
import { isoTime } from '../../util/clock.ts';
import { fromOutside, reasonFromOutside } from '../../util/own-secrets.ts';
import { beginningOf, whyUnusable } from '../../util/validity.ts';
import type { Reason } from '../../worker/reason.ts';

/** A credential as it was last seen, and who keeps it. */
export interface KnownCredential {
  readonly name: string;
  /** Name of its manager. */
  readonly manager: string;
  readonly state: CredentialState;
  /** Why its last renewal failed, as long as it does. */
  readonly trouble?: Reason;
}

/** The last known state of all credentials that managers keep or watch here. */
export class CredentialBoard {
  /** By manager and name: several may look at one file, and none of them hides what another one says. */
  readonly #known = new Map<string, KnownCredential>();
  /** Managers that did not look yet, and what keeps them from it: what is not known may be bad. */
  readonly #awaited = new Map<string, string | undefined>();

  get all(): readonly KnownCredential[] {
    return [...this.#known.values()];
  }

  /** Each that is there, once, with the end that comes first. */
  get held(): readonly HeldCredential[] {
    const held = new Map<string, HeldCredential>();
    for (const { name, state } of this.#known.values()) {
      if (state.kind !== 'there') continue;
      const { expiresAt } = state.facts;
      const other = held.get(name)?.expiresAt;
      if (held.has(name) && (expiresAt ?? Infinity) >= (other ?? Infinity)) continue;
      held.set(name, { name, expiresAt });
    }
    return [...held.values()];
  }

  /**
   * Takes what a manager saw, and forgets what it no longer shows.
   * @param troubles by name
   * @returns whether a credential is good, or good for longer, that was not: queues may be waiting to submit
   */
  show(manager: string, states: readonly CredentialState[], troubles: ReadonlyMap<string, Reason>): boolean {
    const before = new Map(this.#known);
    let better = this.#awaited.has(manager);
    this.forget(manager);
    for (const seen of states) {
      const state = seen.kind === 'broken' ? { ...seen, error: reasonFromOutside(seen.error) } : seen;
      const name = nameOf(state);
      const trouble = troubles.get(name);
      const key = keyOf(manager, name);
      this.#known.set(key, { name, manager, state, ...(trouble && { trouble: reasonFromOutside(trouble) }) });
      const earlier = before.get(key)?.state;
      better ||= endOf(state) > (earlier === undefined ? -Infinity : endOf(earlier));
      // What cannot be used yet may end later than the good one that takes its place.
      better ||= earlier !== undefined && beginOf(state) < beginOf(earlier);
    }
    return better;
  }

  /** Announces a manager that has not looked yet, or that cannot look, and why. */
  expect(manager: string, why?: string): void {
    this.#awaited.set(manager, why === undefined ? undefined : fromOutside(why));
  }

  forget(manager: string): void {
    this.#awaited.delete(manager);
    for (const [key, known] of this.#known) if (known.manager === manager) this.#known.delete(key);
  }

  /**
   * Why nothing may be submitted with these, if so; of an inner list one is enough. A credential that the queue names must be known. A credential that was only
   * found in a template, and that no manager keeps here, holds nothing back once all managers have looked.
   * @param minLifetime ms
   */
  judge(
    { names: needed, named }: { readonly names: readonly NeededCredential[]; readonly named: boolean },
    minLifetime: number,
    now: number,
  ): Reason | undefined {
    for (const some of needed) {
      if (typeof some === 'string' || some.length === 0) continue;
      const faults = some.map((name) => this.judge({ names: [name], named }, minLifetime, now));
      if (faults.every((fault) => fault !== undefined)) return faults[0];
    }
    const names = needed.filter((one) => typeof one === 'string');
    const wanted = new Set(names);
    const reasons = this.all
      .filter(({ name }) => wanted.has(name))
      // A manager that fails to renew the credential says more than one that only watches it.
      .toSorted((a, b) => Number(a.trouble === undefined) - Number(b.trouble === undefined))
      .map((known) => judgeOne(known, minLifetime, now));
    const reason = reasons.find((one) => one !== undefined);
    if (reason !== undefined) return reason;
    const unknown = names.find((name) => !this.all.some((known) => known.name === name));
    if (unknown === undefined) return undefined;
    const [why] = [...this.#awaited.values()].filter((one) => one !== undefined);
    if (why !== undefined) return { code: 'credential-unknown', message: `${unknown} is not known: ${why}` };
    if (this.#awaited.size > 0)
      return { code: 'credential-unknown', message: `${unknown} was not looked at yet` };
    if (!named) return undefined;
    const message = `no credential manager keeps or watches ${unknown}: name one that does, or a file by its path`;
    return { code: 'credential-unknown', message };
  }
}

/** A credential with a short life from the beginning must have only this part of it left. */
const leastPart = 0.25;

/** Why it is not good for `minLifetime` (ms) from now on, or a quarter of all its life if that is less; undefined: it is. */
export function judgeOne(
  { name, state, trouble }: KnownCredential,
  minLifetime: number,
  now: number,
): Reason | undefined {
  const why = trouble === undefined ? '' : `; its renewal fails: ${trouble.message}`;
  if (state.kind === 'broken') return { code: 'credential-bad', message: `${state.error.message}${why}` };
  const { expiresAt = Infinity } = state.facts;
  const unusable = whyUnusable(state.facts, now);
  if (unusable !== undefined && expiresAt > now)
    return { code: 'credential-bad', message: `${name} ${unusable}${why}` };
  const since = beginningOf(state.facts, now);
  const least = since === undefined ? minLifetime : Math.min(minLifetime, (expiresAt - since) * leastPart);
  if (expiresAt > now && expiresAt - now >= least) return undefined;
  const seconds = Math.round((expiresAt - now) / 1000);
  const left =
    seconds <= 0
      ? 'has expired'
      : `ends in ${seconds} s, less than the ${Math.round(least / 1000)} s that are wanted (credmanager.minLifetime)`;
  return { code: 'credential-ending', message: `${name} ${left} (${isoTime(expiresAt)})${why}` };
}

function keyOf(manager: string, name: string): string {
  return `${manager}\n${name}`;
}

export function nameOf(state: CredentialState): string {
  return state.kind === 'there' ? state.facts.name : state.name;
}

function beginOf(state: CredentialState): number {
  return state.kind === 'there' ? (state.facts.notBefore ?? -Infinity) : Infinity;
}

function endOf(state: CredentialState): number {
  return state.kind === 'there' ? (state.facts.expiresAt ?? Infinity) : -Infinity;
}

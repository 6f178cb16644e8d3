import type { Reason } from '../../../worker/reason.ts';

/**
 * Reasons of a queue that say that its backend gives no answer, or that no job of a Pod can be followed. Refusals and limits are none of
 * them: jobs run on meanwhile, and Kubernetes deletes the Pods of a node that is not ready for five minutes.
 */
const down: ReadonlySet<string> = new Set([
  ...['no-such-queue', 'not-listed', 'status-unknown', 'plugin-failed', 'plugin-timeout'],
  ...['credential-bad', 'credential-unknown'],
]);

/** These come before the others in the reasons of a queue, and say nothing of its backend. */
const first: ReadonlySet<string> = new Set(['queue-status', 'cric-status', 'paused', 'draining']);

/** Whether the last pass of a queue knew all that lives on its backend: what the database does not have is nowhere then. */
export function isListed(reasons: readonly Reason[]): boolean {
  return !reasons.some(({ code }) => down.has(code) || first.has(code));
}

/** A daemon that starts has it for a moment. */
const starting = 'not-listed';

/** How long a backend that gave an answer before may be away, and how long a start may take to get its first one, ms. */
const patience = 60_000;
const startPatience = 10_000;

/** Whether the backend counts as down, by what each ping finds. */
export class BackendHealth {
  #wellAt: number | undefined;
  #firstAt: number | undefined;

  /** Why the backend counts as down; undefined: it does not. @param now ms, from a clock that only grows */
  trouble(reasons: readonly Reason[], now: number): string | undefined {
    this.#firstAt ??= now;
    const found = reasons.find(({ code }) => down.has(code));
    if (found === undefined) {
      this.#wellAt = now;
      return undefined;
    }
    const { since, longest } =
      this.#wellAt === undefined
        ? { since: found.code === starting ? this.#firstAt : -Infinity, longest: startPatience }
        : { since: this.#wellAt, longest: patience };
    return now - since < longest ? undefined : found.message;
  }
}

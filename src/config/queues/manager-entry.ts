import type { Problem } from '../../util/located.ts';
import type { JsonObject } from '../../util/json.ts';

/** A manager as an entry names it, with its options. */
export type ManagerEntry = JsonObject & { readonly name: string; readonly module: string };

/** What is wrong with one, by the place in its entry. */
export interface ChoiceProblem {
  readonly pointer: string;
  readonly code: Problem['code'];
  readonly message: string;
  readonly severity?: Problem['severity'];
  /** What several queues may say alike. */
  readonly subject?: string;
}

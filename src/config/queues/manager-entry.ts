import type { Problem } from '../../util/located.ts';
import type { JsonObject } from '../../util/json.ts';

/** A manager as an entry names it, with its options. */
export type ManagerEntry = JsonObject & { readonly name: string; readonly module: string };

/** The mistake of an entry, with its position inside the entry. */
export interface ChoiceProblem {
  readonly pointer: string;
  readonly code: Problem['code'];
  readonly message: string;
  readonly severity?: Problem['severity'];
  /** The text that several queues may share. */
  readonly subject?: string;
}

/** What a code means and what to do about it, for docs/errors.md. */
export interface Explanation {
  readonly meaning: string;
  readonly remedy: string;
  /** Of a reason: it is in the course of things and no trouble. */
  readonly ordinary?: true;
  /** Of a reason: it holds nothing back, and is said beside those that do. */
  readonly note?: true;
}

/** What a code means and what to do about it, for docs/errors.md. */
export interface Explanation {
  readonly meaning: string;
  readonly remedy: string;
}

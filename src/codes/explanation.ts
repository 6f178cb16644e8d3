/** The meaning of a code and its remedy, for docs/errors.md. */
export interface Explanation {
  readonly meaning: string;
  readonly remedy: string;
  /** A reason with this flag is in the course of things, and no trouble. */
  readonly ordinary?: true;
  /** A reason with this flag holds nothing back; it stands beside those that do. */
  readonly note?: true;
}

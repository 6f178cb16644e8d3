/**
 * Why something is not done, for people and for programs. `code` is one of the catalogue (`codes/`), or a
 * third-party plugin's own.
 */
export interface Reason {
  readonly code: string;
  readonly message: string;
}

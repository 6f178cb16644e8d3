/** A reason for which a Pod cannot be run: it goes to the Pod's message. */
export interface PodProblem {
  /** JSON pointer into the body of /create. */
  readonly at: string;
  /** A whole sentence. */
  readonly message: string;
}

export const problem = (at: string, message: string): PodProblem => ({ at, message });

/** A text of the Pod in a message: on one line, and short. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}

/** Collects mistakes and warnings, while a plan goes on to find the others. */
export interface Findings {
  readonly problems: PodProblem[];
  readonly warnings: string[];
}

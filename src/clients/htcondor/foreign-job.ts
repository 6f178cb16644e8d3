import type { JobId } from './classad.ts';

/** A job that another program submitted, as a schedd has it in its queue or its history. */
export interface ForeignJob {
  readonly id: JobId;
  /** The schedd. */
  readonly connection: string;
  readonly isQueued: boolean;
  readonly status: number | undefined;
  /** It ended by itself, with exit status 0. */
  readonly endedWell: boolean;
  /** The user whose job it is, and the one as whom thresher submits there; undefined: the schedd does not tell users apart. */
  readonly owner: string;
  readonly user: string | undefined;
  /** Its variables, as the ad has them: "A=1 B=2", or "A=1;B=2". */
  readonly environment: string;
  /** The directory from which it was submitted. */
  readonly directory: string;
  /** s, UTC */
  readonly queuedAt: number | undefined;
  /** The factory whose mark it has. */
  readonly factory: string | undefined;
}

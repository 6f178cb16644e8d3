import type { Payload } from '../../plugins/contracts/index.ts';
import { messageOf } from '../../worker/errors.ts';
import type { HtcJob, HtcJobSpec, SecretData, SpecProblem } from '../../clients/htcjob/resource.ts';

/** One job of a resource that is to be asked for. */
export interface JobToMake {
  readonly resource: Pick<HtcJob, 'metadata' | 'spec'>;
  /** Its number, from 0 on: the script's argument. */
  readonly number: number;
  /** Index of its origin. */
  readonly index: number;
  /** Contents of the Secrets that the resource names, by Secret. */
  readonly secrets: ReadonlyMap<string, SecretData>;
}

/** Makes the payload of a job. Pure: the same job always gets the same payload. */
export interface JobMaker {
  /** Mistakes that the schema of the resource lets through. Empty: it may be submitted. */
  problems(spec: HtcJobSpec): readonly SpecProblem[];
  /** @throws an Error whose message says why it cannot be made */
  payload(job: JobToMake): Payload;
}

/** The mistakes in a resource; what keeps it from being looked at is one, too. */
export function problemsOf(spec: HtcJobSpec, maker: Pick<JobMaker, 'problems'>): readonly SpecProblem[] {
  try {
    return maker.problems(spec);
  } catch (error) {
    return [{ at: '/spec', message: messageOf(error) }];
  }
}

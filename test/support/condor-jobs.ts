import type { JobQueue } from '../../src/plugins/htcondor/job-queue.ts';
import type { Owners } from '../../src/plugins/htcondor/owners.ts';

/** A schedd that does not tell its users apart. */
export const anyOwner: Pick<Owners, 'part' | 'now' | 'unanswered' | 'isOther'> = {
  part: async (jobs) => ({ ours: jobs, others: [] }),
  now: async () => ({ where: 'true', unanswered: undefined }),
  unanswered: undefined,
  isOther: () => false,
};

/** A `queue` statement with a job for each row; each variable is `$(name)` in the text before it. Values are without commas, and only the last may have blanks. */
export function queueRows(variables: readonly string[], rows: readonly (readonly string[])[]): string {
  return [`queue ${variables.join(',')} from (`, ...rows.map((row) => row.join(',')), ')', ''].join('\n');
}

/** A schedd that has the queue that it had. */
export const sameQueue: Pick<JobQueue, 'started' | 'require'> = {
  started: () => Promise.resolve({ started: 1, name: 'S' }),
  require: () => Promise.resolve(),
};

import { beginningFromOutside } from '../../util/beginning.ts';
import { fromOutside } from '../../util/own-secrets.ts';
import type { JobId } from './classad.ts';
import { HTCondorError } from './errors.ts';

/** The results of an action, as numbers of jobs. */
export interface ActionCounts {
  readonly succeeded: number;
  readonly failed: number;
  readonly notFound: number;
  /** Jobs in a status that the action does not fit: only a held job can be released. */
  readonly badStatus: number;
  readonly alreadyDone: number;
  readonly denied: number;
}

/** A reason with a quote in it puts a job on hold without any (23.9), and one of two lines is cut. */
export function plainReason(reason: string): string {
  return reason
    .replaceAll('"', "'")
    .replaceAll('\\', '/')
    .replaceAll(/[\s\0]+/g, ' ');
}

/** Jobs that one submission may have, many times over: a number that is wrong must not become as many objects. */
const mostJobs = 100_000;

/** `-terse` writes one line for each cluster: "1.0 - 1.9". @returns undefined for any other text */
export function submittedJobs(stdout: string): JobId[] | undefined {
  const jobs: JobId[] = [];
  for (const line of stdout.split('\n').filter((line) => line.trim() !== '')) {
    const [, ...numbers] = /^(\d+)\.(\d+) - (\d+)\.(\d+)\s*$/.exec(line) ?? [];
    const [cluster, first, last, lastProc] = numbers.map(Number);
    if (cluster === undefined || first === undefined || lastProc === undefined || cluster !== last)
      return undefined;
    // One more than a number that is not exact is that number again: a count up to it has no end.
    if (![cluster, first, lastProc].every(Number.isSafeInteger)) return undefined;
    if (jobs.length + lastProc - first >= mostJobs) return undefined;
    for (let proc = first; proc <= lastProc; proc++) jobs.push({ cluster, proc });
  }
  return jobs.length === 0 ? undefined : jobs;
}

export function actionCounts(text: string): ActionCounts | undefined {
  const found =
    /^(\d+) Succeeded, (\d+) Failed, (\d+) Not Found, (\d+) Bad Status, (\d+) Already Done, (\d+) Permission Denied/m.exec(
      text,
    );
  if (found === null) return undefined;
  const [succeeded = 0, failed = 0, notFound = 0, badStatus = 0, alreadyDone = 0, denied = 0] = found
    .slice(1)
    .map(Number);
  return { succeeded, failed, notFound, badStatus, alreadyDone, denied };
}

/** The user that `condor_ping` names, `NAME@DOMAIN`. Undefined where the schedd authenticates nobody. @throws HTCondorError where it names none */
export function userOfPing(answer: string): string | undefined {
  const user = / succeeded as (\S+) to /.exec(answer)?.[1];
  if (user === 'unauthenticated@unmapped') return undefined;
  if (user !== undefined && !user.endsWith('@unmapped')) return user;
  const message =
    user === undefined
      ? `condor_ping names no user: ${JSON.stringify(beginningFromOutside(answer, 300))}`
      : `the schedd maps thresher to no user of its own (${fromOutside(user)}): its CERTIFICATE_MAPFILE has to name one`;
  throw new HTCondorError({ code: 'condor-answer', message, maybeDone: false });
}

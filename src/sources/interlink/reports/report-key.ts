import { ThresherError } from '../../../worker/errors.ts';
import { isJobToken, type JobKey, jobToken, readJobKey } from '../../job-key.ts';

const identityOf = (uid: string) => `interlink report ${uid}`;

/** The token by which a job says whose report it sends. */
export function reportToken(key: JobKey, uid: string): string {
  return jobToken(key, identityOf(uid));
}

export function isReportToken(key: JobKey, uid: string, token: string): boolean {
  return isJobToken(key, identityOf(uid), token);
}

/** @param made whether a missing file is made @throws ThresherError `interlink-files` */
export function readReportKey(file: string, made: boolean): JobKey {
  return readJobKey(file, made, (why, options) => {
    const message = `the key of the reports of jobs in ${file} cannot be used: ${why}`;
    return new ThresherError('interlink-files', message, { file }, options);
  });
}

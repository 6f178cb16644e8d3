import { ThresherError } from '../../../worker/errors.ts';
import { isJobToken, type JobKey, jobToken, readJobKey } from '../../job-key.ts';

/** By which job an event is sent. An attempt at a job has an index of its own. */
export interface JobIdentity {
  /** UID of the resource. */
  readonly uid: string;
  /** Index of the origin. */
  readonly index: number;
}

const textOf = ({ uid, index }: JobIdentity) => `htcjob ${JSON.stringify([uid, index])}`;

/** The token by which a job says who it is. */
export function tokenOf(key: JobKey, identity: JobIdentity): string {
  return jobToken(key, textOf(identity));
}

export function isTokenOf(key: JobKey, identity: JobIdentity, token: string): boolean {
  return isJobToken(key, textOf(identity), token);
}

/** @param made whether a missing file is made @throws ThresherError `htcjob-event-key` */
export function readEventKey(file: string, made: boolean): JobKey {
  return readJobKey(file, made, (why, options) => {
    const message = `the key of the events of jobs in ${file} cannot be used: ${why}`;
    return new ThresherError('htcjob-event-key', message, { file }, options);
  });
}

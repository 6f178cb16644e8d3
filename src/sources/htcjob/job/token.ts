import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hasCode } from '../../../util/files.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';

/** By which job an event is sent. An attempt at a job has an index of its own. */
export interface JobIdentity {
  /** UID of the resource. */
  readonly uid: string;
  /** Index of the origin. */
  readonly index: number;
}

/** Signs the identities of jobs. */
export type EventKey = Uint8Array;

/** The fewest bytes of a key. */
const shortest = 32;

/** The token by which a job says who it is. It proves no more than that: a stranger cannot make one, and a job cannot make another's. */
export function tokenOf(key: EventKey, { uid, index }: JobIdentity): string {
  return createHmac('sha256', key)
    .update(`htcjob ${JSON.stringify([uid, index])}`)
    .digest('base64url');
}

/** Takes the same time however much of it is right. */
export function isTokenOf(key: EventKey, identity: JobIdentity, token: string): boolean {
  const right = Buffer.from(tokenOf(key, identity));
  const given = Buffer.from(token);
  return given.length === right.length && timingSafeEqual(given, right);
}

/**
 * The key in a file. Jobs outlive a daemon, so it is kept: a daemon with another key would refuse their events.
 * @param made whether a missing file is made
 * @throws ThresherError `htcjob-event-key`
 */
export async function readEventKey(file: string, made: boolean): Promise<EventKey> {
  try {
    if (made) await makeKey(file);
    const key = await readFile(file);
    if (key.length >= shortest) return key;
    throw new Error(`it has ${key.length} bytes, and a key needs ${shortest} or more`);
  } catch (error) {
    const message = `the key of the events of jobs in ${file} cannot be used: ${messageOf(error)}`;
    throw new ThresherError('htcjob-event-key', message, { file }, { cause: error });
  }
}

async function makeKey(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    const opened = await open(file, 'wx', 0o600);
    try {
      await opened.writeFile(randomBytes(48).toString('base64'));
      await opened.datasync();
    } finally {
      await opened.close();
    }
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}

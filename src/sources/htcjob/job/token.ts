import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
export function readEventKey(file: string, made: boolean): EventKey {
  try {
    if (made) makeKey(file);
    const key = readFileSync(file);
    if (key.length >= shortest) return key;
    throw new Error(`it has ${key.length} bytes, and a key needs ${shortest} or more`);
  } catch (error) {
    const message = `the key of the events of jobs in ${file} cannot be used: ${messageOf(error)}`;
    throw new ThresherError('htcjob-event-key', message, { file }, { cause: error });
  }
}

/** A crash leaves no half of a key: it gets its name when it is whole. */
function makeKey(file: string): void {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const written = `${file}.${randomBytes(6).toString('hex')}`;
  writeFileSync(written, randomBytes(48).toString('base64'), { mode: 0o600, flush: true });
  try {
    linkSync(written, file);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(written);
  }
}

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { hasCode } from '../util/files.ts';
import { messageOf } from '../worker/errors.ts';

/** Signs the identities of jobs, so that thresher knows whose word it hears. */
export type JobKey = Uint8Array;

/** The fewest bytes of a key. */
const shortest = 32;

/** The token of a job. It proves no more than its identity: a stranger cannot make one, and a job cannot make another's. */
export function jobToken(key: JobKey, identity: string): string {
  return createHmac('sha256', key).update(identity).digest('base64url');
}

/** Takes the same time however much of it is right. */
export function isJobToken(key: JobKey, identity: string, token: string): boolean {
  const right = Buffer.from(jobToken(key, identity));
  const given = Buffer.from(token);
  return given.length === right.length && timingSafeEqual(given, right);
}

/**
 * The key in a file. Jobs outlive a daemon, so it is kept: a daemon with another key would refuse their words.
 * @param made whether a missing file is made
 * @param failed makes the error of a key that cannot be used, by its reason
 */
export function readJobKey(
  file: string,
  made: boolean,
  failed: (why: string, options: ErrorOptions) => Error,
): JobKey {
  try {
    if (made) makeKey(file);
    const key = readFileSync(file);
    if (key.length >= shortest) return key;
    throw new Error(`it has ${key.length} bytes, and a key needs ${shortest} or more`);
  } catch (error) {
    throw failed(messageOf(error), { cause: error });
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

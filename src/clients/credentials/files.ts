import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Clock, systemClock } from '../../util/clock.ts';
import { hasCode, syncToDisk } from '../../util/files.ts';
import { OperatorFiles } from '../../util/operator-files.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import { rememberCredential } from './credential.ts';

/** No credential is longer; a longer file is a log or a disk, named by mistake. Bytes. */
const largest = 1024 * 1024;
/** Age at which a file that a crash left beside a credential is removed: older than any program may run, ms. */
const leftoverAge = 3_600_000;

const files = new OperatorFiles({ clock: systemClock });

/**
 * Any call about a file that an administrator named.
 * @throws ThresherError `file-timeout` where its file system does not answer, else what `call` throws
 */
export function onSecretFile<T>(path: string, what: string, call: () => Promise<T>): Promise<T> {
  return files.run(path, what, call);
}

/** A file as it was at one moment. */
export interface SecretFile {
  readonly bytes: Buffer;
  /** Permissions only. */
  readonly mode: number;
  readonly owner: number;
  /** ms UTC */
  readonly modifiedAt: number;
}

/**
 * Reads a file that may hold a secret.
 * @throws ThresherError `credential-missing` if it is not there or cannot be read, `credential-wrong` if it is no plain
 * file or too long.
 */
export async function readSecretFile(path: string): Promise<SecretFile> {
  try {
    return await onSecretFile(path, 'reading', async () => {
      // A pipe in its place would keep a plain `open` waiting for ever.
      const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
      try {
        return await readOpened(file, path);
      } finally {
        await file.close();
      }
    });
  } catch (error) {
    const isWrong = error instanceof ThresherError && error.code === 'credential-wrong';
    throw isWrong ? error : unreadable(path, error);
  }
}

/** The same for a credential, of which no text from outside shows anything from now on. @throws ThresherError as `readSecretFile` does */
export async function readCredentialFile(path: string): Promise<SecretFile> {
  const file = await readSecretFile(path);
  rememberCredential(file.bytes, path);
  return file;
}

function unreadable(path: string, cause: unknown): ThresherError {
  const why = hasCode(cause, 'ENOENT') ? 'does not exist' : `cannot be read: ${messageOf(cause)}`;
  return new ThresherError('credential-missing', `${path} ${why}`, { file: path }, { cause });
}

async function readOpened(file: FileHandle, path: string): Promise<SecretFile> {
  const found = await file.stat();
  const wrong = (what: string) => new ThresherError('credential-wrong', `${path} ${what}`, { file: path });
  if (!found.isFile()) throw wrong('is not a plain file');
  if (found.size > largest) throw wrong(`has ${found.size} bytes, which is too long for a credential`);
  const bytes = await file.readFile();
  return { bytes, mode: found.mode & 0o7777, owner: found.uid, modifiedAt: found.mtimeMs };
}

/**
 * The fault in owner or mode of a file that holds a secret; undefined if there is none.
 * @param user the reader: our own user id. Files of root are in good hands too.
 */
export function exposure(
  path: string,
  { mode, owner }: Pick<SecretFile, 'mode' | 'owner'>,
  user: number | undefined,
): Reason | undefined {
  const faults = [
    ...((mode & 0o077) === 0 ? [] : [`has mode ${mode.toString(8).padStart(4, '0')} (0600 would be right)`]),
    ...(user === undefined || owner === user || owner === 0
      ? []
      : [`belongs to user ${owner} (the daemon runs as user ${user})`]),
  ];
  if (faults.length === 0) return undefined;
  return { code: 'credential-exposed', message: `${path} holds a secret and ${faults.join(' and ')}` };
}

/** Changes whenever the file is changed, replaced or removed. Cheap: it reads nothing. */
export async function fileVersion(path: string): Promise<string> {
  try {
    const look = () => stat(path, { bigint: true });
    const { mtimeNs, ctimeNs, ino, size } = await onSecretFile(path, 'a look at', look);
    return [mtimeNs, ctimeNs, ino, size].join(' ');
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  }
}

/**
 * Replaces a secret file by the file that `make` writes to the path it is given, once `check` found it good: on the
 * disk, 0600, as a whole or not at all. Until then the new file lies in a directory that only this user can enter,
 * whatever mode a program gives it. A link stays a link: its target is replaced.
 * @throws ThresherError `credential-unwritable`, `file-timeout`, `credential-tool` if nothing was written, or the error
 * of `make` or `check`.
 */
export async function replaceBy(
  path: string,
  clock: Clock,
  make: (temporary: string) => Promise<void>,
  check: (bytes: Buffer) => void,
): Promise<void> {
  let target = path;
  let beside = '';
  try {
    await onSecretFile(path, 'replacing', async () => {
      target = await realpath(path).catch(() => path);
      await removeLeftovers(target, clock);
      beside = join(dirname(target), `.${basename(target)}.${randomUUID()}.new`);
      await mkdir(beside, { mode: 0o700 });
    });
  } catch (error) {
    throw unwritable(path, error);
  }
  try {
    const temporary = join(beside, basename(target));
    await make(temporary);
    await onSecretFile(path, 'replacing', async () => {
      check(await settle(temporary, await ownerOf(target)));
      try {
        await rename(temporary, target);
        await syncToDisk(dirname(target));
      } catch (error) {
        throw unwritable(path, error);
      }
    });
  } finally {
    const removal = () => rm(beside, { recursive: true, force: true });
    // A later replacement removes what is left.
    await onSecretFile(path, 'clearing up beside', removal).catch(() => undefined);
  }
}

/** The same for content that is at hand. */
export async function replaceSecretFile(path: string, clock: Clock, content: string): Promise<void> {
  const make = async (temporary: string) => {
    try {
      await onSecretFile(path, 'writing', () => writeFile(temporary, content, { mode: 0o600, flag: 'wx' }));
    } catch (error) {
      throw unwritable(path, error);
    }
  };
  await replaceBy(path, clock, make, () => undefined);
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The owner of the file to replace; for a missing file, that of its directory. */
async function ownerOf(target: string): Promise<Owner | undefined> {
  const found = await stat(target).catch(() => stat(dirname(target)));
  return { uid: found.uid, gid: found.gid };
}

/** Gives the new file its owner and mode and brings it to the disk; @returns its content. */
async function settle(temporary: string, owner: Owner | undefined): Promise<Buffer> {
  let file: FileHandle;
  try {
    file = await open(temporary, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const message = 'the program ended as if all were well, but wrote nothing';
    throw new ThresherError('credential-tool', message, {}, { cause: error });
  }
  try {
    const { bytes } = await readOpened(file, 'what was written');
    await file.chmod(0o600);
    // Run by root beside a daemon that is not, it must not take the file away from that.
    if (owner !== undefined && process.getuid?.() === 0) await file.chown(owner.uid, owner.gid);
    await file.sync();
    return bytes;
  } finally {
    await file.close();
  }
}

function unwritable(path: string, cause: unknown): ThresherError {
  const why = hasCode(cause, 'ENOENT', 'ENOTDIR')
    ? `${dirname(path)} is no directory: make one that the user of the daemon can write to`
    : messageOf(cause);
  return new ThresherError(
    'credential-unwritable',
    `${path} cannot be replaced: ${why}`,
    { file: path },
    { cause },
  );
}

/** Directories that killed daemons left: they hold keys. */
async function removeLeftovers(target: string, clock: Clock): Promise<void> {
  const directory = dirname(target);
  const names = await readdir(directory).catch(() => []);
  const begin = `.${basename(target)}.`;
  for (const name of names) {
    const id = name.slice(begin.length, -'.new'.length);
    if (!name.startsWith(begin) || !name.endsWith('.new') || !/^[0-9a-f-]{36}$/.test(id)) continue;
    const left = join(directory, name);
    const found = await stat(left).catch(() => undefined);
    if (found !== undefined && clock.now() - found.mtimeMs > leftoverAge)
      await rm(left, { recursive: true, force: true });
  }
}

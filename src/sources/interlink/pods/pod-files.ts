import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Stats } from 'node:fs';
import { chmod, chown, lchown, lstat, mkdir, readdir, readFile, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../../plugins/contracts/index.ts';
import type { Lane } from '../../../util/file-lane.ts';
import type { RetrievedPodData } from '../../../clients/interlink/wire.ts';
import { hasCode, syncToDisk, writeFileAtomically } from '../../../util/files.ts';
import { oneLine } from '../../../util/one-line.ts';
import { NotPlainFile, openPlainFile, readPlainFile } from '../../../util/plain-file.ts';
import { removeTree } from '../../../util/remove-tree.ts';
import { messageOf, ThresherError, toReason } from '../../../worker/errors.ts';
import { isContainerName, isPodUid } from '../pod/names.ts';
import { bounds } from '../bounds.ts';
import { privateDirectory, reportFile } from '../pod/report.ts';
import { parseFile, type PodRecord } from './pod-record.ts';

interface LoadedRecord {
  readonly record: PodRecord;
  /** Length of the file, if it has a body, bytes; 0: it has none. */
  readonly bodyBytes: number;
}

/** The records of a directory. */
export interface LoadedRecords {
  /** In the order of their acceptance. */
  readonly records: readonly LoadedRecord[];
  /** UIDs of the Pods whose files are there, and cannot be read. */
  readonly damaged: readonly string[];
}

/** One version of a report, as its file shows it. */
export interface ReportVersion {
  /** ms: some file systems have whole seconds. */
  readonly time: number;
  readonly inode: number;
  readonly size: number;
}

/** Who writes into the directories of Pods. */
type Writer = Pick<Stats, 'uid' | 'gid'>;

/** The file that keeps the user of the jobs, `UID:GID`. */
const writerFile = 'output-user';

const isRoot = () => process.geteuid?.() === 0;

/** Standard error of the job, by the template of the queue. */
const errorFile = 'job.err';
/** Bytes at its end among which the last line is looked for. */
const mostWords = 2000;

/**
 * The files of Pods below one directory: `pods/UID.json` for what was accepted, `output/UID/` for what a job leaves. Secrets are in
 * the former, so no other user reads them.
 */
export class PodFiles {
  readonly #root: string;
  readonly #pods: string;
  readonly #output: string;
  readonly #log: Log;
  /** All calls wait here: its file system may be one that jobs share, and hang. */
  readonly #lane: Lane;
  /** UIDs of records that a call is changing. One that was given up may still come to it. */
  readonly #changing = new Set<string>();
  /** User of the jobs, if it is another one. */
  #writer: Writer | undefined;

  constructor(root: string, log: Log, lane: Lane) {
    this.#lane = lane;
    this.#root = root;
    this.#pods = join(root, 'pods');
    this.#output = join(root, 'output');
    this.#log = log;
  }

  /** Changes nothing, since the directory may be one that is not mounted yet. @throws ThresherError `interlink-files` */
  async load(): Promise<LoadedRecords> {
    try {
      const names = await this.#lane.run(`listing ${this.#pods}`, () =>
        readdir(this.#pods).catch((error: unknown) => {
          if (hasCode(error, 'ENOENT')) return [];
          throw error;
        }),
      );
      const read: (LoadedRecord | string | undefined)[] = [];
      for (const name of names)
        read.push(await this.#lane.run(`reading ${join(this.#pods, name)}`, () => this.#record(name)));
      const records = read.filter((one) => typeof one === 'object');
      return {
        records: records.sort((one, other) => one.record.acceptedAt - other.record.acceptedAt),
        damaged: read.filter((one) => typeof one === 'string'),
      };
    } catch (error) {
      throw unusable(this.#pods, error);
    }
  }

  /**
   * Makes what is missing, also what a crash kept from being made for these Pods: one that has something else in its place keeps no other from
   * its directory. @throws ThresherError `interlink-files`
   */
  async prepare(uids: readonly string[]): Promise<void> {
    try {
      await this.#lane.run(`making ${this.#output}`, async () => {
        for (const directory of [this.#pods, this.#output])
          await mkdir(directory, { recursive: true, mode: 0o700 });
        this.#writer = isRoot() ? await this.#takeOver() : undefined;
        // The other user has to come through to its own directories.
        if (this.#writer !== undefined)
          for (const directory of [this.#root, this.#output]) await chmod(directory, 0o711);
      });
    } catch (error) {
      throw unusable(this.#root, error);
    }
    for (const uid of uids)
      try {
        await this.#makeOutput(uid);
      } catch (error) {
        this.#log.warn('a Pod has no directory for its output', { pod: uid, ...toReason(error) });
      }
  }

  /**
   * Keeps a new Pod. When this returns, it survives a crash, and its job finds its directory.
   * @returns the length of its file, bytes
   * @throws ThresherError `interlink-files`
   */
  async add(record: PodRecord, data: RetrievedPodData): Promise<number> {
    const bytes = await this.#write(record.uid, { ...record, data });
    await this.#makeOutput(record.uid);
    return bytes;
  }

  /** Keeps a Pod that needs its body no more. When this returns, the file survives a crash. @throws ThresherError `interlink-files` */
  async save(record: PodRecord): Promise<void> {
    await this.#write(record.uid, record);
  }

  /** Whether a job has left anything of itself: its directory is made empty. @throws Error where that is not known */
  async hasOutput(uid: string): Promise<boolean> {
    const directory = this.outputOf(uid);
    const names = await this.#lane.run(
      `listing ${directory}`,
      () =>
        readdir(directory).catch((error: unknown) => {
          if (hasCode(error, 'ENOENT', 'ENOTDIR')) return [];
          throw error;
        }),
      'background',
    );
    // A file server has entries of its own in its directories.
    return names.some((name) => !/^\.(?:snapshot|nfs)/.test(name));
  }

  /** The body of a Pod that waits for its job. @throws ThresherError `interlink-files`: there is none, or it cannot be read; `file-timeout` */
  async body(uid: string): Promise<RetrievedPodData> {
    const file = this.#fileOf(uid);
    try {
      const read = () => readFile(file, 'utf8');
      const { data } = parseFile(await this.#lane.run(`reading ${file}`, read, 'background'), uid);
      if (data === undefined) throw new TypeError('it has no body of the Pod');
      return data;
    } catch (error) {
      if (hasCode(error, 'file-timeout')) throw error;
      throw unusable(file, error);
    }
  }

  async #write(uid: string, content: PodRecord & { readonly data?: RetrievedPodData }): Promise<number> {
    const file = this.#fileOf(uid);
    const text = JSON.stringify(content);
    try {
      await this.#change(uid, `writing ${file}`, () => writeFileAtomically(file, text, 0o600));
      return Buffer.byteLength(text);
    } catch (error) {
      throw unusable(file, error);
    }
  }

  /** Changes of one record come one after the other. While one that was given up has not come back none begins, since it would undo that one. */
  #change(uid: string, what: string, call: () => Promise<void>): Promise<void> {
    return this.#lane.run(what, async () => {
      if (this.#changing.has(uid))
        throw new ThresherError('file-timeout', 'an earlier change of it has not come back yet');
      this.#changing.add(uid);
      try {
        await call();
      } finally {
        this.#changing.delete(uid);
      }
    });
  }

  /** The directory of the records. */
  get place(): string {
    return this.#pods;
  }

  outputOf(uid: string): string {
    return join(this.#output, requireUid(uid));
  }

  /** A container's log, whether or not it is there. */
  logOf(uid: string, container: string): string {
    if (!isContainerName(container))
      throw new TypeError(`no name of a container: ${JSON.stringify(container)}`);
    return join(this.outputOf(uid), `${container}.log`);
  }

  /**
   * The job's report; undefined where its file is still this version, and while there is none.
   * @throws ThresherError `file-timeout`
   */
  async reportSince(
    uid: string,
    seen?: ReportVersion,
  ): Promise<{ readonly text: string; readonly version: ReportVersion } | undefined> {
    const file = join(this.outputOf(uid), reportFile);
    try {
      return await this.#lane.run(`reading ${file}`, async () => {
        const now = await lstat(file);
        if (!now.isFile() || isSameVersion(versionOf(now), seen)) return undefined;
        const { bytes, stats } = await readPlainFile(file, { largest: bounds.reportBytes, links: 'refuse' });
        return { text: bytes.toString('utf8'), version: versionOf(stats) };
      });
    } catch (error) {
      if (error instanceof NotPlainFile && error.why === 'too-large') return undefined;
      this.#cannot('the report of a Pod cannot be read', uid, error);
      return undefined;
    }
  }

  /** The last line that the job itself wrote to its standard error; undefined: there is none. @throws ThresherError `file-timeout` */
  async lastWords(uid: string): Promise<string | undefined> {
    const file = join(this.outputOf(uid), errorFile);
    try {
      return await this.#lane.run(`reading ${file}`, async () => {
        await using opened = await openPlainFile(file, 'refuse');
        const { size } = await opened.stat();
        const bytes = Buffer.alloc(Math.min(size, mostWords));
        const { bytesRead } = await opened.read(bytes, 0, bytes.length, size - bytes.length);
        const lines = bytes.toString('utf8', 0, bytesRead).split('\n');
        return lines.map(oneLine).findLast((line) => line.trim() !== '');
      });
    } catch (error) {
      this.#cannot('the last words of a job cannot be read', uid, error);
      return undefined;
    }
  }

  /** @throws ThresherError `file-timeout`: what the file says is not known yet */
  #cannot(message: string, pod: string, error: unknown): void {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return;
    if (hasCode(error, 'file-timeout')) throw error;
    this.#log.warn(message, { pod, error: messageOf(error) });
  }

  /**
   * Removes what a job has left of its Pod's Secrets. Its runner does so itself, unless it was killed.
   * @throws ThresherError `file-timeout`: it is to be tried again
   */
  async wipe(uid: string): Promise<void> {
    const directory = join(this.outputOf(uid), privateDirectory);
    try {
      await removeAll(directory, this.#lane, this.#writer);
    } catch (error) {
      if (hasCode(error, 'file-timeout')) throw error;
      this.#log.error('files of a Pod that may hold Secrets cannot be removed', {
        directory,
        error: messageOf(error),
      });
    }
  }

  /** Removes all that is left of a Pod: the record goes last, so that a crash forgets no file. */
  async remove(uid: string): Promise<void> {
    const file = this.#fileOf(uid);
    try {
      await removeAll(this.outputOf(uid), this.#lane, this.#writer);
      await this.#change(uid, `removing ${file}`, async () => {
        await rm(file, { force: true });
        await syncToDisk(this.#pods);
      });
    } catch (error) {
      throw unusable(file, error);
    }
  }

  /**
   * A daemon of root is told the user of the jobs by the owner of `output`. It keeps him in a file, and takes the directory itself: its owner could
   * put a link to any place under the name of a Pod, and root would follow it.
   */
  async #takeOver(): Promise<Writer | undefined> {
    const file = join(this.#root, writerFile);
    const { uid, gid } = await stat(this.#output);
    // Below a directory of another user, a daemon that is not root goes on tomorrow with what is his.
    if ((await stat(this.#root)).uid !== 0) return uid === 0 ? undefined : { uid, gid };
    if (uid !== 0) {
      // Jobs that run must come through at each moment.
      await chmod(this.#output, 0o711);
      await writeFileAtomically(file, `${uid}:${gid}\n`, 0o600);
      await chown(this.#output, 0, 0);
      return { uid, gid };
    }
    const text = await readFile(file, 'utf8').catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    const [, user, group] = /^(\d{1,10}):(\d{1,10})\s*$/.exec(text) ?? [];
    if (user === undefined)
      throw new TypeError(
        `${file} is not UID:GID, the user of the jobs: write it, or chown ${this.#output} to him and remove the file`,
      );
    return { uid: Number(user), gid: Number(group) };
  }

  async #makeOutput(uid: string): Promise<void> {
    const directory = this.outputOf(uid);
    try {
      await this.#lane.run(`making ${directory}`, async () => {
        const there = await lstat(directory).catch(() => undefined);
        // From a time when the directory around it was not ours.
        if (there?.isSymbolicLink() === true) await rm(directory);
        await mkdir(directory, { recursive: true, mode: 0o700 });
        const { uid: user, gid } = this.#writer ?? {};
        if (user !== undefined && gid !== undefined) await lchown(directory, user, gid);
      });
    } catch (error) {
      throw unusable(directory, error);
    }
  }

  #fileOf(uid: string): string {
    return join(this.#pods, `${requireUid(uid)}.json`);
  }

  /**
   * A file that a crash left half-written goes; a damaged one stays, and costs its own Pod alone.
   * @returns the UID of a damaged one: it is the name of the file
   */
  async #record(name: string): Promise<LoadedRecord | string | undefined> {
    const file = join(this.#pods, name);
    if (name.endsWith('.tmp')) {
      await rm(file, { force: true });
      return undefined;
    }
    const uid = name.replace(/\.json$/, '');
    if (uid === name || !isPodUid(uid)) return undefined;
    try {
      const text = await readFile(file, 'utf8');
      const { record, data } = parseFile(text, uid);
      return { record, bodyBytes: data === undefined ? 0 : Buffer.byteLength(text) };
    } catch (error) {
      this.#log.error('the file of a Pod is damaged, and its job is left alone', {
        pod: uid,
        file,
        error: messageOf(error),
      });
      return uid;
    }
  }
}

export function isSameVersion(one: ReportVersion, other: ReportVersion | undefined): boolean {
  return one.time === other?.time && one.inode === other.inode && one.size === other.size;
}

function versionOf({ mtimeMs: time, ino: inode, size }: Stats): ReportVersion {
  return { time, inode, size };
}

/**
 * Removes a directory in which a job may still write. Jobs leave directories that their owner cannot enter.
 * @param user of the jobs, if it is another one: all is removed with his rights, since he may put a link in the place of a directory meanwhile
 */
async function removeAll(directory: string, lane: Lane, user?: Writer): Promise<void> {
  if (user !== undefined) {
    await removeAs(user, directory, lane);
    return;
  }
  try {
    await removeTree(directory, lane);
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'EPERM', 'ENOTEMPTY')) throw error;
    if (!isRoot()) await openUp(directory, lane);
    await removeTree(directory, lane);
  }
}

async function removeAs({ uid, gid }: Writer, directory: string, lane: Lane): Promise<void> {
  const script = 'chmod -R u+rwx "$1"; rm -rf "$1"';
  // Other processes of this user can read the environment of this one, and that of the daemon may have secrets.
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
  const options = { uid, gid, cwd: '/', env, stdio: 'ignore' } as const;
  const removing = spawn('/bin/sh', ['-c', script, 'sh', directory], options);
  await once(removing, 'close');
  // The directory itself stands in one of root's. What its owner could not remove keeps it, and the error says so.
  await lane
    .run(`removal of ${directory}`, () => rmdir(directory))
    .catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT')) throw error;
    });
}

async function openUp(directory: string, lane: Lane): Promise<void> {
  const entries = await lane.run(`opening ${directory}`, async () => {
    await chmod(directory, 0o700);
    return readdir(directory, { withFileTypes: true });
  });
  for (const one of entries) if (one.isDirectory()) await openUp(join(directory, one.name), lane);
}

/** The last guard: requests are checked before. */
function requireUid(uid: string): string {
  if (!isPodUid(uid)) throw new TypeError(`no UID of a Pod: ${JSON.stringify(uid)}`);
  return uid;
}

function unusable(file: string, cause: unknown): ThresherError {
  const message = `${file} cannot be used: ${messageOf(cause)}`;
  return new ThresherError('interlink-files', message, { file }, { cause });
}

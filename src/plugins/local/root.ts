import { createHash, randomUUID } from 'node:crypto';
import { rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Static } from 'typebox';
import type { FileLane } from '../../util/file-lane.ts';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../util/files.ts';
import { NotPlainFile, readPlainFile } from '../../util/plain-file.ts';
import { check } from '../../util/schema.ts';
import Type from '../../util/type.ts';
import { ThresherError } from '../../worker/errors.ts';

/** The file in a work directory by which it is known again. */
const markName = '.thresher-root';
/** bytes */
const largest = 4096;

/** Which directory a work directory was when it was first used. */
const RootRecord = Type.Object({
  root: Type.String(),
  /** Content of the mark in it; "" where none could be written. */
  mark: Type.String({ maxLength: 100 }),
  device: Type.String(),
  inode: Type.String(),
  /** When the directory was made, ns: an inode's number is given to the next directory. "0" where it is not known. */
  born: Type.String(),
});
type RootRecord = Static<typeof RootRecord>;
export type Place = Pick<RootRecord, 'device' | 'inode' | 'born'>;

/**
 * The directory with all workers of one connection, and whether it is still the same. A mount that is gone leaves an empty
 * directory, and a directory that was removed leaves none: both look as if no worker existed, while all of them may live.
 * So thresher writes down in its state directory which directory it was, and takes no other for it.
 */
export class WorkRoot {
  readonly path: string;
  readonly #record: string;
  readonly #lane: FileLane;
  readonly #placeOf: (path: string) => Promise<Place | undefined>;

  /** `look`: tells which directory a path is; undefined: none is there. */
  constructor(path: string, stateDir: string, lane: FileLane, look = placeOf) {
    this.path = path;
    this.#placeOf = look;
    const name = createHash('sha256').update(path).digest('hex').slice(0, 16);
    this.#record = join(stateDir, 'local-roots', `${name}.json`);
    this.#lane = lane;
  }

  /** Makes the directory when it is first used. @throws as `require` */
  async prepare(): Promise<void> {
    if (!(await this.require())) {
      await this.#lane.run(`making ${this.path}`, () => ensureDirectory(this.path));
      await this.require();
    }
    await this.#lane.run(`marking ${this.path}`, () => this.#keepMark());
  }

  /**
   * @returns whether the directory is there; `false` only where it never was.
   * @throws ThresherError `local-root-lost` if it was there and is not, or another one is in its place; `file-timeout`
   */
  require(): Promise<boolean> {
    return this.#lane.run(`a look at the directory ${this.path}`, async () => {
      const record = await this.#recorded();
      const place = await this.#placeOf(this.path);
      if (place === undefined) {
        if (record === undefined) return false;
        throw this.#lost('is not there any more');
      }
      if (record === undefined) {
        const mark = await this.#mark();
        await this.#write({ root: this.path, mark, ...place });
        return true;
      }
      const same = isSame(record, place);
      if (same && place.born !== '0') return true;
      const mark = await readMark(this.path);
      // Without a time of birth a place is believed unless another mark stands in it: a cleaner may have taken the mark.
      const unmarked = record.mark === '' || mark === undefined;
      if (unmarked ? !same : mark !== record.mark)
        throw this.#lost('is another directory than the one that held the workers');
      // The same file system, mounted anew or copied with all that is in it.
      if (!same) await this.#write({ ...record, ...place });
      return true;
    });
  }

  #lost(what: string): ThresherError {
    const message =
      `the work directory ${this.path} ${what}: its workers may live, so nothing is concluded and nothing submitted. ` +
      `Mount it again or put it back; if it is gone for good, remove ${this.#record}`;
    return new ThresherError('local-root-lost', message, { root: this.path, record: this.#record });
  }

  async #recorded(): Promise<RootRecord | undefined> {
    try {
      const { bytes } = await readPlainFile(this.#record, { largest, links: 'refuse' });
      const checked = check(RootRecord, JSON.parse(bytes.toString('utf8')));
      if (checked.ok && checked.value.root === this.path) return checked.value;
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      if (!(error instanceof SyntaxError) && !(error instanceof NotPlainFile)) throw error;
    }
    // It says no more than that the directory was used before.
    throw this.#lost(
      'may be another directory than the one that held the workers: the record of that one is damaged',
    );
  }

  /** Writes the mark again where a cleaner of old files took it: it is how the directory is known after a mount. */
  async #keepMark(): Promise<void> {
    const record = await this.#recorded();
    if (record === undefined) return;
    const mark = await this.#mark(record.mark);
    if (mark !== '' && record.mark !== mark) await this.#write({ ...record, mark });
  }

  async #write(record: RootRecord): Promise<void> {
    await ensureDirectory(dirname(this.#record));
    await writeFileAtomically(this.#record, `${JSON.stringify(record)}\n`);
  }

  /**
   * The mark in the directory, made where there is none: another factory may use the same directory, and knows it by the
   * mark of before. @returns "" where none can be written or read: the directory is then known by its place alone.
   */
  async #mark(before = ''): Promise<string> {
    const path = join(this.path, markName);
    const write = () => writeFile(path, `${before === '' ? randomUUID() : before}\n`, { flag: 'wx' });
    try {
      try {
        await write();
      } catch (error) {
        if (!hasCode(error, 'EEXIST')) throw error;
        const found = await readMark(this.path);
        if (found !== undefined) return found;
        // A power cut leaves an empty one, which is none.
        await rm(path, { force: true });
        await write();
      }
      return (await readMark(this.path)) ?? '';
    } catch {
      return '';
    }
  }
}

/** Undefined: no directory is there. */
async function placeOf(path: string): Promise<Place | undefined> {
  try {
    const found = await stat(path, { bigint: true });
    if (!found.isDirectory()) return undefined;
    return { device: String(found.dev), inode: String(found.ino), born: String(found.birthtimeNs) };
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

function isSame(record: RootRecord, { device, inode, born }: Place): boolean {
  const { device: oldDevice, inode: oldInode, born: oldBorn } = record;
  return device === oldDevice && inode === oldInode && born === oldBorn;
}

/** Undefined: there is none, or an empty one. */
async function readMark(root: string): Promise<string | undefined> {
  try {
    const { bytes } = await readPlainFile(join(root, markName), { largest, links: 'refuse' });
    const mark = bytes.toString('utf8').trim();
    return mark === '' ? undefined : mark;
  } catch (error) {
    if (hasCode(error, 'ENOENT') || error instanceof NotPlainFile) return undefined;
    throw error;
  }
}

import { createHash, randomUUID } from 'node:crypto';
import { link, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Static } from 'typebox';
import type { FileLane } from '../../util/file-lane.ts';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../util/files.ts';
import { NotPlainFile, readPlainFile } from '../../util/plain-file.ts';
import { isObject } from '../../util/json.ts';
import { check } from '../../util/schema.ts';
import Type from '../../util/type.ts';
import { ThresherError } from '../../worker/errors.ts';
import { isFactoryId } from '../../worker/identity.ts';
import { largest as largestMark } from './inside.ts';
import { workerIdOf } from './worker-files.ts';
import type { Context } from '../contracts/context.ts';

/** The file in a work directory by which it is known again. */
const markName = '.thresher-root';
/** The file in it with the id of the factory whose workers it holds. */
const ownerName = '.thresher-factory';
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
 *
 * It is of one factory: two count their workers alike, so that each would take a directory of the other for that of its own
 * worker of the same number, end what lives there and remove it. The first one writes its id into the directory.
 */
export class WorkRoot {
  readonly path: string;
  readonly #factoryId: string;
  readonly #record: string;
  readonly #lane: FileLane;
  readonly #placeOf: (path: string) => Promise<Place | undefined>;

  /** `look`: tells which directory a path is; undefined: none is there. */
  constructor(
    path: string,
    { factoryId, stateDir }: Pick<Context, 'factoryId' | 'stateDir'>,
    lane: FileLane,
    look = placeOf,
  ) {
    this.path = path;
    this.#factoryId = factoryId;
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
   * @throws ThresherError `local-root-lost` if it was there and is not, or another one is in its place;
   *   `local-root-of-other-factory`, `file-timeout`
   */
  require(): Promise<boolean> {
    return this.#lane.run(`a look at the directory ${this.path}`, async () => {
      const owners = await this.#owners();
      if (owners.some((owner) => owner !== this.#factoryId)) throw this.#notOwn(owners);
      if (!(await this.#requireSame())) return false;
      const owner = (await readOwner(this.#ownerFile)) ?? (await this.#becomeOwner());
      if (owner !== undefined && owner !== this.#factoryId) throw this.#notOwn([owner]);
      return true;
    });
  }

  /** The factory that the directory is of; where none is written down, those that have workers in it. */
  async #owners(): Promise<readonly string[]> {
    const owner = await readOwner(this.#ownerFile);
    return owner === undefined ? factoriesIn(this.path) : [owner];
  }

  async #requireSame(): Promise<boolean> {
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
  }

  get #ownerFile(): string {
    return join(this.path, ownerName);
  }

  #notOwn(owners: readonly string[]): ThresherError {
    const others = owners.filter((owner) => owner !== this.#factoryId);
    const whose = others.length === owners.length ? 'is of' : 'has workers of this and of';
    const message =
      `the work directory ${this.path} ${whose} the factory ${others.join(', ')}: each would take the other's workers for its own, so ` +
      `nothing is concluded, submitted or removed there. Give this factory (${this.#factoryId}) another workDir; or, where ` +
      `none of the other's workers lives, or this is that factory under a new id, write ${this.#factoryId} into ${this.#ownerFile}`;
    return new ThresherError('local-root-of-other-factory', message, { root: this.path, factories: others });
  }

  /** Of two factories that come at once, one has it. @returns which; undefined where nothing can be written */
  async #becomeOwner(): Promise<string | undefined> {
    const path = this.#ownerFile;
    const made = `${path}-${randomUUID()}`;
    try {
      await writeFile(made, `${this.#factoryId}\n`, { flag: 'wx' });
      await linkUnlessThere(made, path);
      const owner = await readOwner(path);
      if (owner !== undefined) return owner;
      // A power cut leaves an empty one, which names nobody.
      await rm(path, { force: true });
      await linkUnlessThere(made, path);
      return await readOwner(path);
    } catch {
      return undefined;
    } finally {
      await rm(made, { force: true }).catch(() => undefined);
    }
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
   * The mark in the directory, made where there is none: another factory may have used the same directory, and knows it by the
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

async function linkUnlessThere(from: string, to: string): Promise<void> {
  await link(from, to).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error;
  });
}

/** The factories that have directories of workers in a work directory: an earlier version wrote down nowhere whose it is. */
async function factoriesIn(root: string): Promise<readonly string[]> {
  const factories = new Set<string>();
  const names = await readdir(root).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  });
  for (const name of names) {
    if (workerIdOf(name) === undefined) continue;
    const text = await readLine(join(root, name, 'worker.json'), largestMark).catch(() => undefined);
    const factory = text === undefined ? undefined : factoryOf(text);
    if (factory !== undefined) factories.add(factory);
  }
  return [...factories];
}

function factoryOf(text: string): string | undefined {
  try {
    const read: unknown = JSON.parse(text);
    const factory = isObject(read) ? read['factory'] : undefined;
    return typeof factory === 'string' && isFactoryId(factory) ? factory : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined: there is none, or one that names no factory. */
async function readOwner(path: string): Promise<string | undefined> {
  const text = await readLine(path);
  return text !== undefined && isFactoryId(text) ? text : undefined;
}

/** Undefined: there is none, or an empty one. */
const readMark = (root: string) => readLine(join(root, markName));

async function readLine(path: string, most = largest): Promise<string | undefined> {
  try {
    const { bytes } = await readPlainFile(path, { largest: most, links: 'refuse' });
    const line = bytes.toString('utf8').trim();
    return line === '' ? undefined : line;
  } catch (error) {
    if (hasCode(error, 'ENOENT') || error instanceof NotPlainFile) return undefined;
    throw error;
  }
}

import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, type FileHandle, link, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileLane } from '../../util/file-lane.ts';
import { hasCode, writeFileAtomically } from '../../util/files.ts';
import { NotPlainFile, openPlainFile, readPlainFile } from '../../util/plain-file.ts';
import { removeTree } from '../../util/remove-tree.ts';
import type { PayloadFile } from '../../worker/payload.ts';
import { largest, makeOne, readSmall, requireDirectory, within } from './inside.ts';
import { insideScript } from './namespace-script.ts';
import { payloadAttempt, payloadName, writeFiles } from './payload-files.ts';
import { shimScript } from './shim.ts';
import {
  type Claim,
  type EndReason,
  type Exit,
  type Marked,
  parseClaim,
  parseEndReason,
  parseExit,
  parseMarked,
  type Parsed,
  type ShimClaim,
  workerIdOf,
} from './worker-files.ts';

/** Something in the work directory that cannot be what thresher or a shim wrote there. */
export interface Damage {
  readonly path: string;
  readonly why: string;
}

/** The claims of a worker. */
export interface Claims {
  /** Whether the worker has a directory. */
  readonly directory: boolean;
  /** The claim of the attempt that runs or ran; else the one that stands for the attempt that was asked for. */
  readonly claim?: Claim;
}

/** A claim of a shim that cannot be read: an attempt began, and only its processes can tell whether it lives. */
const unreadableClaim: ShimClaim = { by: 'shim', pid: 0, startTicks: 0, bootId: '' };

/**
 * The directory of one connection: one directory per worker, named by its id, with `worker.json`, `claim.N` per attempt,
 * `payload.N` with the files of its payload, `stdout`, `stderr`, `exit` and, when we ended it, `ended-by`. All that is known after a crash is known from here.
 *
 * A pilot can write everything in here. So no file is read that is a link, a pipe, a device or too long, and a worker's
 * directory is opened first and its files through that: a pilot that puts a link into the place of its directory
 * leads thresher nowhere. All work goes through the connection's lane: a file system that hangs holds its threads only.
 */
export class WorkDirectory {
  readonly root: string;
  readonly shim: string;
  /** The script between the shim and a command with a PID namespace of its own. */
  readonly namespaceScript: string;
  readonly #lane: FileLane;
  readonly #tell: (damage: Damage) => void;

  /** `tell` hears of each damaged file whenever it is met. */
  constructor(root: string, lane: FileLane, tell: (damage: Damage) => void = () => undefined) {
    this.root = root;
    this.shim = join(root, '.shim.sh');
    this.namespaceScript = join(root, '.inside.sh');
    this.#lane = lane;
    this.#tell = tell;
  }

  path(workerId: number): string {
    return join(this.root, String(workerId));
  }

  /** Puts the current scripts into the directory; running workers keep those they started with. */
  prepareScripts(): Promise<void> {
    return this.#lane.run(`writing ${this.shim}`, async () => {
      await replaceScript(this.shim, shimScript);
      await replaceScript(this.namespaceScript, insideScript);
    });
  }

  /** Removes the remains of interrupted removals. */
  removeTrash(): Promise<void> {
    return removeTree(this.#trash, this.#lane);
  }

  requireWritable(): Promise<void> {
    return this.#lane.run(`a look at the rights of ${this.root}`, () =>
      access(this.root, constants.W_OK | constants.X_OK),
    );
  }

  /** Makes a worker's directory with its mark. The root must be there: making one would hide that it was lost. */
  prepare(marked: Marked): Promise<void> {
    const { workerId, attempt } = marked.worker;
    const path = this.path(workerId);
    return this.#lane.run(`preparing ${path}`, async () => {
      await makeOne(path);
      await this.#within(workerId, undefined, async (inside) => {
        const before = await this.#readMarked(inside, workerId);
        if (before?.ok) {
          const { factory, worker } = before.value;
          if (factory !== marked.factory) throw new Error(`${path} is of the factory ${factory}`);
          // A call that hung here may come back when a later attempt is under way.
          if (worker.attempt > attempt) throw new Error(`${path} is at attempt ${worker.attempt} already`);
        }
        await writeFileAtomically(join(inside, 'worker.json'), JSON.stringify(marked, null, 1));
      });
    });
  }

  /** The directory of the files that an attempt at a worker gets with its payload. */
  payloadPath(workerId: number, attempt: number): string {
    return join(this.path(workerId), payloadName(attempt));
  }

  /**
   * Writes the files of a payload, before the shim of the attempt starts. Each attempt has a directory of its own: a call of an
   * earlier attempt that hung and comes back changes nothing of this one. What earlier attempts left goes, since none of them
   * can start any more.
   */
  async writePayload(workerId: number, attempt: number, files: readonly PayloadFile[]): Promise<void> {
    const path = this.payloadPath(workerId, attempt);
    const left: string[] = [];
    await this.#lane.run(`writing ${path}`, async () => {
      await requireDirectory(this.#trash);
      const written = await this.#within(workerId, undefined, async (inside) => {
        for (const name of await readdir(inside)) {
          if ((payloadAttempt(name) ?? Infinity) > attempt) continue;
          const away = join(this.#trash, `${workerId}-${randomUUID()}`);
          await rename(join(inside, name), away);
          left.push(away);
        }
        await writeFiles(join(inside, payloadName(attempt)), files);
        return true;
      });
      if (written === undefined) throw new Error(`${this.path(workerId)} is not there`);
    });
    for (const away of left) await removeTree(away, this.#lane);
  }

  /** The names of what is in the directory, but for our own files. */
  names(): Promise<string[]> {
    return this.#lane.run(`listing ${this.root}`, async () => {
      const names = await readdir(this.root);
      return names.filter((name) => !name.startsWith('.'));
    });
  }

  /**
   * The mark of a worker's directory, or why it cannot be read; undefined when there is no directory, or none with a mark.
   * `name`: of a directory in the root; the names of workers are their ids.
   */
  marked(name: number | string): Promise<Parsed<Marked> | undefined> {
    const path = join(this.root, String(name));
    return this.#lane.run(`reading ${join(path, 'worker.json')}`, async () => {
      const workerId = workerIdOf(String(name));
      try {
        return await this.#within(name, undefined, async (inside) => {
          // Any other name than an id is damage in itself, if there is a mark.
          const read = await this.#readMarked(inside, workerId ?? 0);
          if (workerId !== undefined || read === undefined) return read;
          return { ok: false, why: 'it holds a mark, but its name is no id of a worker' };
        });
      } catch (error) {
        if (error instanceof NotPlainFile) return { ok: false, why: error.message };
        throw error;
      }
    });
  }

  claims(workerId: number, attempt: number): Promise<Claims> {
    return this.#lane.run(`reading the claims of worker ${workerId}`, async () => {
      const nothing: Claims = { directory: false };
      return this.#within(workerId, nothing, async (inside) => {
        let standing: Claim | undefined;
        for (let n = attempt; n >= 1; n--) {
          const claim = await this.#readClaim(inside, workerId, n);
          if (claim?.by === 'shim') return { directory: true, claim };
          if (n === attempt) standing = claim;
        }
        return { directory: true, ...(standing && { claim: standing }) };
      }).catch((error: unknown) => {
        if (!(error instanceof NotPlainFile)) throw error;
        this.#tell({ path: this.path(workerId), why: error.message });
        return nothing;
      });
    });
  }

  /** The claim that stands for one attempt. */
  claimOf(workerId: number, attempt: number): Promise<Claim | undefined> {
    return this.#lane.run(`reading a claim of worker ${workerId}`, () =>
      this.#within(workerId, undefined, (inside) => this.#readClaim(inside, workerId, attempt)),
    );
  }

  /** Whether a shim has not come to its claim yet: it writes the file just before, and removes it right after. */
  isBeforeClaim(workerId: number, { pid }: Pick<ShimClaim, 'pid'>): Promise<boolean> {
    return this.#lane.run(`looking for the shim of worker ${workerId}`, () =>
      this.#within(workerId, false, async (inside) => (await readdir(inside)).includes(`claim.by-${pid}`)),
    );
  }

  /** Takes the claim of an attempt, so that its shim never starts; @returns the claim that stands, ours or the shim's. */
  async fence(workerId: number, attempt: number): Promise<Claim> {
    const standing = await this.#lane.run(`fencing worker ${workerId}`, () =>
      this.#within(workerId, undefined, async (inside): Promise<Claim> => {
        const before = await this.#readClaim(inside, workerId, attempt);
        if (before !== undefined) return before;
        const mine = join(inside, `claim.fence-${randomUUID()}`);
        await writeFile(mine, JSON.stringify({ by: 'fence' }), { flag: 'wx' });
        try {
          await link(mine, join(inside, `claim.${attempt}`));
          return { by: 'fence' };
        } catch (error) {
          if (!hasCode(error, 'EEXIST')) throw error;
          const standing = await this.#readClaim(inside, workerId, attempt);
          if (standing === undefined) throw error;
          return standing;
        } finally {
          await rm(mine, { force: true });
        }
      }),
    );
    if (standing === undefined) throw new Error(`${this.path(workerId)} is not there`);
    return standing;
  }

  exit(workerId: number): Promise<Exit | undefined> {
    return this.#lane.run(`reading the exit status of worker ${workerId}`, async () => {
      const file = await this.#small(workerId, 'exit');
      const exit = file && parseExit(file.text);
      return exit && { ...exit, at: file.at };
    });
  }

  endedBy(workerId: number): Promise<{ reason: EndReason; at: number } | undefined> {
    return this.#lane.run(`reading why worker ${workerId} was ended`, async () => {
      const file = await this.#small(workerId, 'ended-by');
      return file && { reason: parseEndReason(file.text), at: file.at };
    });
  }

  /** The first reason stays: a worker over its wall time that is then killed was over its wall time. */
  markEnded(workerId: number, reason: EndReason): Promise<void> {
    return this.#lane.run(`writing why worker ${workerId} was ended`, () =>
      this.#within(workerId, undefined, async (inside) => {
        await writeFile(join(inside, 'ended-by'), `${reason}\n`, { flag: 'wx' }).catch((error: unknown) => {
          if (!hasCode(error, 'EEXIST')) throw error;
        });
      }),
    );
  }

  /** Opens what a worker wrote; undefined if there is none. The caller closes it, in the lane. @throws NotPlainFile */
  async openLog(workerId: number, name: string): Promise<FileHandle | undefined> {
    let givenUp = false;
    try {
      return await this.#lane.run(`opening ${join(this.path(workerId), name)}`, async () => {
        const file = await this.#within(workerId, undefined, (inside) =>
          openPlainFile(join(inside, name), 'refuse'),
        );
        if (givenUp) await file?.close();
        return file;
      });
    } catch (error) {
      givenUp = true;
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  /** Removes a worker's directory. It vanishes in one step: an interrupted removal leaves no half of a worker. */
  async remove(workerId: number): Promise<void> {
    const away = join(this.#trash, `${workerId}-${randomUUID()}`);
    const moved = await this.#lane.run(`removal of ${this.path(workerId)}`, async () => {
      await requireDirectory(this.#trash);
      try {
        await rename(this.path(workerId), away);
        return true;
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return false;
        throw error;
      }
    });
    if (moved) await removeTree(away, this.#lane);
  }

  get #trash(): string {
    return join(this.root, '.trash');
  }

  /** @throws NotPlainFile if something other than a directory has the name */
  #within<T, N>(name: number | string, none: N, work: (inside: string) => Promise<T>): Promise<T | N> {
    return within(join(this.root, String(name)), none, work);
  }

  async #readMarked(inside: string, workerId: number): Promise<Parsed<Marked> | undefined> {
    const read = await readSmall(inside, 'worker.json');
    if (read === undefined) return undefined;
    return 'why' in read ? { ok: false, why: read.why } : parseMarked(read.text, workerId);
  }

  async #readClaim(inside: string, workerId: number, attempt: number): Promise<Claim | undefined> {
    const name = `claim.${attempt}`;
    const read = await readSmall(inside, name);
    if (read === undefined) return undefined;
    const parsed = 'why' in read ? { ok: false as const, why: read.why } : parseClaim(read.text);
    const at = 'at' in read ? { at: read.at } : {};
    if (parsed.ok) return parsed.value.by === 'shim' ? { ...parsed.value, ...at } : parsed.value;
    // A power cut leaves an empty one.
    this.#tell({ path: join(this.path(workerId), name), why: parsed.why });
    return { ...unreadableClaim, ...at };
  }

  /** A small file with the time (ms) it was written. An entry that cannot be one is told of, and counts as none. */
  async #small(workerId: number, name: string): Promise<{ text: string; at: number } | undefined> {
    try {
      const read = await this.#within(workerId, undefined, (inside) => readSmall(inside, name));
      if (read === undefined || !('why' in read)) return read;
      this.#tell({ path: join(this.path(workerId), name), why: read.why });
    } catch (error) {
      if (!(error instanceof NotPlainFile)) throw error;
      this.#tell({ path: this.path(workerId), why: error.message });
    }
    return undefined;
  }
}

async function replaceScript(path: string, script: string): Promise<void> {
  const current = await readPlainFile(path, { largest, links: 'refuse' }).catch(() => undefined);
  if (current?.bytes.toString('utf8') !== script) await writeFileAtomically(path, script, 0o755);
}

import { randomUUID } from 'node:crypto';
import { link, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../util/files.ts';
import type { Worker } from '../../worker/worker.ts';
import { insideScript } from './inside.ts';
import type { ProcessId } from './processes.ts';
import { shimScript } from './shim.ts';

/** Who may decide whether an attempt runs: whoever made the claim file first. */
export type Claim = (ProcessId & { readonly by: 'shim'; readonly at: number }) | { readonly by: 'fence' };

/** Our mark on a worker directory, and all that is needed to make its row again. */
export interface Marked {
  readonly factory: string;
  readonly worker: Worker;
  /** What it takes of `maxSlots` and `maxMemory`. */
  readonly cpu: number;
  readonly memory: number;
}

/** Why we ended a worker, written down before the first signal. */
export type EndReason = 'killed' | 'walltime';

/**
 * The directory of one connection: one directory per worker, named by its id, with `worker.json`, `claim.N` per attempt,
 * `stdout`, `stderr`, `exit` and, when we ended it, `ended-by`. Whatever is known after a crash is known from here.
 */
export class WorkDirectory {
  readonly root: string;
  readonly shim: string;
  readonly inside: string;

  constructor(root: string) {
    this.root = root;
    this.shim = join(root, '.shim.sh');
    this.inside = join(root, '.inside.sh');
  }

  path(workerId: number): string {
    return join(this.root, String(workerId));
  }

  /** Makes the directory itself and puts the current scripts into it; running workers keep the one they started with. */
  async prepareRoot(): Promise<void> {
    await ensureDirectory(this.root);
    await replaceScript(this.shim, shimScript);
    await replaceScript(this.inside, insideScript);
    // What a removal left when it was interrupted.
    await rm(join(this.root, '.trash'), { recursive: true, force: true });
  }

  async prepare(marked: Marked): Promise<void> {
    const { workerId } = marked.worker;
    const directory = this.path(workerId);
    await ensureDirectory(directory);
    const owner = (await this.marked(workerId))?.factory;
    if (owner !== undefined && owner !== marked.factory)
      throw new Error(`${directory} is of the factory ${owner}`);
    await writeFileAtomically(join(directory, 'worker.json'), JSON.stringify(marked, null, 1));
  }

  /** The worker ids that have a directory. */
  async ids(): Promise<number[]> {
    const entries = await readdir(this.root).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return [];
      throw error;
    });
    return entries.map(Number).filter((id) => Number.isInteger(id) && id > 0);
  }

  /** Undefined when the directory is not there or carries no readable mark. */
  async marked(workerId: number): Promise<Marked | undefined> {
    const text = await readOptional(join(this.path(workerId), 'worker.json'));
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as Marked;
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  async claim(workerId: number, attempt: number): Promise<Claim | undefined> {
    const path = join(this.path(workerId), `claim.${attempt}`);
    const text = await readOptional(path);
    if (text === undefined) return undefined;
    const at = (await stat(path)).mtimeMs;
    try {
      const claim = JSON.parse(text) as Claim;
      return claim.by === 'fence' ? claim : { ...claim, at };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      // A power cut took its content: somebody began, and nobody of before it is alive.
      return { by: 'shim', pid: 0, startTicks: 0, bootId: '', at };
    }
  }

  /** The claim of the attempt that runs or ran, if any did. */
  async shimClaim(workerId: number, attempt: number): Promise<(Claim & { by: 'shim' }) | undefined> {
    for (let n = attempt; n >= 1; n--) {
      const claim = await this.claim(workerId, n);
      if (claim?.by === 'shim') return claim;
    }
    return undefined;
  }

  /** Takes the claim of an attempt, so that its shim never starts; @returns the claim that stands, ours or the shim's. */
  async fence(workerId: number, attempt: number): Promise<Claim> {
    const before = await this.claim(workerId, attempt);
    if (before !== undefined) return before;
    const directory = this.path(workerId);
    const mine = join(directory, `claim.fence-${randomUUID()}`);
    await writeFile(mine, JSON.stringify({ by: 'fence' }));
    try {
      await link(mine, join(directory, `claim.${attempt}`));
      return { by: 'fence' };
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
      const standing = await this.claim(workerId, attempt);
      if (standing === undefined) throw error;
      return standing;
    } finally {
      await rm(mine, { force: true });
    }
  }

  async exit(workerId: number): Promise<{ status: number; at: number } | undefined> {
    const file = await readWithTime(join(this.path(workerId), 'exit'));
    // A power cut may leave the name without the content.
    if (file === undefined || !/^\d+$/.test(file.text)) return undefined;
    return { status: Number(file.text), at: file.at };
  }

  async endedBy(workerId: number): Promise<{ reason: EndReason; at: number } | undefined> {
    const file = await readWithTime(join(this.path(workerId), 'ended-by'));
    return file && { reason: file.text === 'walltime' ? 'walltime' : 'killed', at: file.at };
  }

  /** The first reason stays: a worker over its wall time that is then killed was over its wall time. */
  async markEnded(workerId: number, reason: EndReason): Promise<void> {
    try {
      await writeFile(join(this.path(workerId), 'ended-by'), `${reason}\n`, { flag: 'wx' });
    } catch (error) {
      // A disk that takes no reason must not keep the worker from being ended.
      if (!hasCode(error, 'EEXIST', 'ENOENT', 'ENOSPC', 'EDQUOT', 'EROFS', 'EIO')) throw error;
    }
  }

  /** Removes a worker's directory. It vanishes in one step: an interrupted removal leaves no half of a worker. */
  async remove(workerId: number): Promise<void> {
    const trash = join(this.root, '.trash');
    await ensureDirectory(trash);
    const away = join(trash, `${workerId}-${randomUUID()}`);
    try {
      await rename(this.path(workerId), away);
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return;
      throw error;
    }
    await rm(away, { recursive: true, force: true });
  }
}

async function replaceScript(path: string, script: string): Promise<void> {
  const current = await readFile(path, 'utf8').catch(() => '');
  if (current !== script) await writeFileAtomically(path, script, 0o755);
}

/** A small file with the time (ms) it was written; through one handle, since it may be removed in between. */
async function readWithTime(path: string): Promise<{ text: string; at: number } | undefined> {
  let file;
  try {
    file = await open(path);
    return { text: (await file.readFile('utf8')).trim(), at: (await file.stat()).mtimeMs };
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  } finally {
    await file?.close();
  }
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    // A plain file in the place of a directory is no worker of ours.
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

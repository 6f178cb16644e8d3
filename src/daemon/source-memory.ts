import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SourceMemory } from '../plugins/contracts/index.ts';
import type { Store } from '../store/store.ts';
import { ensureDirectory, hasCode, writeFileAtomically } from '../util/files.ts';
import { readPlainFile } from '../util/plain-file.ts';

/** bytes */
const longestText = 256 * 1024 * 1024;

/** The files of a source in the state directory. */
class Files implements SourceMemory {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  placeOf(name: string): string {
    return join(this.#directory, name);
  }

  async read(name: string): Promise<string | undefined> {
    try {
      const { bytes } = await readPlainFile(this.placeOf(name), { largest: longestText, links: 'follow' });
      return bytes.toString('utf8');
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  async write(name: string, text: string): Promise<void> {
    const file = this.placeOf(name);
    await ensureDirectory(dirname(file));
    await writeFileAtomically(file, text, 0o600);
  }

  async remove(name: string): Promise<void> {
    await rm(this.placeOf(name), { force: true });
  }
}

/** The rows of a source in the database. */
class Rows implements SourceMemory {
  readonly #source: string;
  readonly #store: Pick<Store, 'sourceMemories' | 'file' | 'errorOf'>;

  constructor(source: string, store: Pick<Store, 'sourceMemories' | 'file' | 'errorOf'>) {
    this.#source = source;
    this.#store = store;
  }

  placeOf(name: string): string {
    return `${this.#source} ${name} in the table source_memories of ${this.#store.file}`;
  }

  read(name: string): Promise<string | undefined> {
    return this.#asking(() => this.#store.sourceMemories.read(this.#source, name));
  }

  write(name: string, text: string): Promise<void> {
    return this.#asking(() => this.#store.sourceMemories.write(this.#source, name, text));
  }

  remove(name: string): Promise<void> {
    return this.#asking(() => this.#store.sourceMemories.remove(this.#source, name));
  }

  async #asking<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      throw this.#store.errorOf(error);
    }
  }
}

/** Texts are kept at `home`. Those that came by a copy of the database are found at the other place once, and move home. */
class Homed implements SourceMemory {
  readonly #files: Files;
  readonly #rows: Rows;
  readonly #home: Files | Rows;
  /** By name. */
  readonly #moves = new Map<string, Promise<void>>();

  constructor(files: Files, rows: Rows, home: Files | Rows) {
    this.#files = files;
    this.#rows = rows;
    this.#home = home;
  }

  placeOf(name: string): string {
    return this.#home.placeOf(name);
  }

  async read(name: string): Promise<string | undefined> {
    await this.#moved(name);
    return this.#home.read(name);
  }

  async write(name: string, text: string): Promise<void> {
    await this.#moved(name);
    await this.#home.write(name, text);
  }

  /** Once for all who ask at the same time; where it fails, for the next one again. */
  #moved(name: string): Promise<void> {
    const move = this.#moves.get(name) ?? this.#move(name);
    this.#moves.set(name, move);
    move.catch(() => this.#moves.delete(name));
    return move;
  }

  async #move(name: string): Promise<void> {
    const row = await this.#rows.read(name);
    // A row is there in a file of SQLite only after a copy, and is newer than what a daemon left on this machine before.
    const text = row ?? (await this.#files.read(name));
    const isHome = this.#home === this.#rows ? row !== undefined : row === undefined;
    if (text !== undefined && !isHome) await this.#home.write(name, text);
    // What is not right any more must not be found once an operator removes what is. A file that stays is no reason not to use the row.
    if (this.#home === this.#rows) await this.#files.remove(name).catch(() => undefined);
    else if (row !== undefined) await this.#rows.remove(name);
  }
}

/** What sources keep as files in the state directory alone: for those who make sources without a database. */
export const inFiles =
  (stateDir: string) =>
  (kind: string): SourceMemory =>
    new Files(join(stateDir, kind));

/**
 * What the sources of a daemon keep. With SQLite these are files, which also outlive the loss of the database; in a PostgreSQL database
 * they are rows, which other machines see and which only the daemon that has the source can change.
 */
export const sourceMemories =
  (stateDir: string, store: Store, inRows: boolean) =>
  (kind: string): SourceMemory => {
    const files = new Files(join(stateDir, kind));
    const rows = new Rows(kind, store);
    return new Homed(files, rows, inRows ? rows : files);
  };

/**
 * The same for commands, which change nothing of it.
 * @param store absent: files of the state directory alone
 */
export const memoriesToRead =
  (stateDir: string, store?: Store, inRows = false) =>
  (kind: string): SourceMemory => {
    const files = new Files(join(stateDir, kind));
    const rows = store && new Rows(kind, store);
    return {
      placeOf: (name) => (inRows ? (rows ?? files) : files).placeOf(name),
      read: async (name) => (await rows?.read(name)) ?? files.read(name),
      write: async () => undefined,
    };
  };

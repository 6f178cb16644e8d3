import type { SourceHost } from '../../plugins/contracts/index.ts';
import type { Meta } from './cluster.ts';

export type Name = Pick<Meta, 'namespace' | 'name' | 'uid'>;

/**
 * The names of HTCJobs whose jobs may live. The database has their uids alone, by which no server can be asked for one that a list is without. They
 * are written down a while after the claim: one that is missing costs another list.
 */
export class Names {
  static readonly #file = 'names.json';
  readonly #host: Pick<SourceHost, 'memory' | 'log'>;
  /** By uid; undefined until they were read. */
  #names: ReadonlyMap<string, Name> | undefined;

  constructor(host: Pick<SourceHost, 'memory' | 'log'>) {
    this.#host = host;
  }

  has(uid: string): boolean {
    return this.#names?.has(uid) === true;
  }

  /** @throws Error of the memory */
  async all(): Promise<ReadonlyMap<string, Name>> {
    this.#names ??= await this.#read();
    return this.#names;
  }

  /**
   * @param uids of those whose names are kept beside these, where they are known
   * @throws Error of the memory
   */
  async keep(names: Iterable<Name>, uids: Iterable<string>): Promise<void> {
    const before = await this.all();
    const kept = new Map<string, Name>();
    for (const uid of uids) {
      const name = before.get(uid);
      if (name !== undefined) kept.set(uid, name);
    }
    for (const { namespace, name, uid } of names) kept.set(uid, { namespace, name, uid });
    if (kept.size === before.size && kept.keys().every((uid) => before.has(uid))) return;
    const text = JSON.stringify([...kept.values()].map(({ uid, namespace, name }) => [uid, namespace, name]));
    await this.#host.memory.write(Names.#file, text);
    this.#names = kept;
  }

  async #read(): Promise<ReadonlyMap<string, Name>> {
    const { memory, log } = this.#host;
    const text = await memory.read(Names.#file);
    if (text === undefined) return new Map();
    try {
      const names: unknown = JSON.parse(text);
      if (Array.isArray(names) && names.every(isName))
        return new Map(names.map(([uid, namespace, name]) => [uid, { uid, namespace, name }]));
    } catch {
      // Said below.
    }
    log.warn('the record of the names of HTCJobs cannot be read, and begins anew', {
      file: memory.placeOf(Names.#file),
    });
    return new Map();
  }
}

function isName(value: unknown): value is [uid: string, namespace: string, name: string] {
  return Array.isArray(value) && value.length === 3 && value.every((part) => typeof part === 'string');
}

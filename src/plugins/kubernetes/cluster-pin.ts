import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { ThresherError } from '../../worker/errors.ts';
import type { ConnectionHost } from '../contracts/backend.ts';
import type { SourceMemory } from '../contracts/source.ts';

/** How a cluster is told from another one. */
export interface ClusterIdentity {
  /** "https://10.0.0.1:6443" */
  readonly server: string;
  /** SHA-256 of its certificate authority, hex; empty where the system's are used. */
  readonly ca: string;
}

/**
 * Which cluster the workers of a kubeconfig are on. A file that is changed to name another one, or that names another one on the machine that
 * takes over, would show all its workers as gone, and they would be submitted a second time there. A new address, or a new certificate
 * authority, is still the same cluster; both at once are another one, and so is another path at the same address: what stands before several
 * clusters tells them apart by it.
 */
export class ClusterPin {
  readonly #name: string;
  readonly #stateDir: string;
  readonly #memory: SourceMemory;
  readonly #text: string;
  #found: ClusterIdentity | undefined;
  /** What is kept. Undefined: it was not read yet. */
  #kept: ClusterIdentity | undefined;
  #keeping = false;

  constructor(name: string, { stateDir, memoryOf }: Pick<ConnectionHost, 'stateDir' | 'memoryOf'>) {
    this.#name = name;
    this.#stateDir = stateDir;
    this.#memory = memoryOf('kubernetes');
    this.#text = `cluster-${createHash('sha256').update(name).digest('hex').slice(0, 16)}.json`;
  }

  /** From now on it is remembered beyond the daemon's end: workers are followed there. Commands only look. */
  async keep(): Promise<void> {
    this.#keeping = true;
    if (this.#found !== undefined) await this.#write(this.#found);
  }

  /** @throws ThresherError `kubernetes-other-cluster`, and what says that it cannot be read or written which cluster it was */
  async confirm(found: ClusterIdentity): Promise<void> {
    const known = this.#found ?? (await this.#read());
    const sameCa = known?.ca !== '' && known?.ca === found.ca;
    if (known !== undefined && known.server !== found.server && (!sameCa || isNeighbour(known, found))) {
      const ca = sameCa ? '' : ' with another certificate authority';
      const place = this.#memory.placeOf(this.#text);
      const message = `${this.#name} was ${known.server} and is now ${found.server}${ca}: another cluster, where its workers are not. Name the new one in a kubeconfig of its own; if it is the same after all, remove ${place} and restart`;
      throw new ThresherError('kubernetes-other-cluster', message, { file: place });
    }
    this.#found = found;
    if (this.#keeping) await this.#write(found);
  }

  async #read(): Promise<ClusterIdentity | undefined> {
    // A pipe or a disk image in its place hides which cluster it was, and so does a database that is away: that is not taken for one never seen.
    const text = await this.#memory.read(this.#text);
    try {
      return text === undefined ? undefined : (JSON.parse(text) as ClusterIdentity);
    } catch {
      // Cut off: as if it had never been seen.
      return undefined;
    }
  }

  async #write({ server, ca }: ClusterIdentity): Promise<void> {
    const isKept = (one: ClusterIdentity | undefined) => one?.server === server && one.ca === ca;
    if (isKept(this.#kept)) return;
    this.#kept = await this.#read();
    if (isKept(this.#kept) || !existsSync(this.#stateDir)) return;
    const text = { connection: this.#name, server, ca };
    await this.#memory.write(this.#text, `${JSON.stringify(text, null, 2)}\n`);
    this.#kept = { server, ca };
  }
}

function isNeighbour(one: ClusterIdentity, other: ClusterIdentity): boolean {
  const [known, found] = [one, other].map(({ server }) => URL.parse(server));
  return known?.origin === found?.origin && known?.pathname !== found?.pathname;
}

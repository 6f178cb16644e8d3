import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readOperatorFileSync } from '../../util/operator-files.ts';
import { NotPlainFile } from '../../util/plain-file.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Host } from '../contracts/context.ts';

/** How a cluster is told from another one. */
export interface ClusterIdentity {
  /** "https://10.0.0.1:6443" */
  readonly server: string;
  /** SHA-256 of its certificate authority, hex; empty where the system's are used. */
  readonly ca: string;
}

/**
 * Which cluster the workers of a kubeconfig are on. A file that is changed to name another one would show all its workers
 * as gone, and they would be submitted a second time there. A new address, or a new certificate authority, is still the same
 * cluster; both at once are another one, and so is another path at the same address: what stands before several clusters tells them
 * apart by it.
 */
export class ClusterPin {
  readonly #name: string;
  readonly #stateDir: string;
  readonly #file: string;
  #found: ClusterIdentity | undefined;
  #keeping = false;

  constructor(name: string, { stateDir }: Pick<Host, 'stateDir'>) {
    this.#name = name;
    this.#stateDir = stateDir;
    const digest = createHash('sha256').update(name).digest('hex').slice(0, 16);
    this.#file = join(stateDir, 'kubernetes', `cluster-${digest}.json`);
  }

  /** From now on it is remembered beyond the daemon's end: workers are followed there. Commands only look. */
  keep(): void {
    this.#keeping = true;
    if (this.#found !== undefined) this.#write(this.#found);
  }

  /** @throws ThresherError `kubernetes-other-cluster` */
  confirm(found: ClusterIdentity): void {
    const known = this.#found ?? this.#read();
    const sameCa = known?.ca !== '' && known?.ca === found.ca;
    if (known !== undefined && known.server !== found.server && (!sameCa || isNeighbour(known, found))) {
      const ca = sameCa ? '' : ' with another certificate authority';
      const message = `${this.#name} was ${known.server} and is now ${found.server}${ca}: another cluster, where its workers are not. Name the new one in a kubeconfig of its own; if it is the same after all, remove ${this.#file} and restart`;
      throw new ThresherError('kubernetes-other-cluster', message, { file: this.#file });
    }
    this.#found = found;
    if (this.#keeping) this.#write(found);
  }

  #read(): ClusterIdentity | undefined {
    try {
      return JSON.parse(readOperatorFileSync(this.#file, 'pin').bytes.toString('utf8')) as ClusterIdentity;
    } catch (error) {
      // A pipe or a disk image in its place hides which cluster it was: that is not taken for one never seen.
      if (error instanceof NotPlainFile) throw error;
      // Not there, or cut off: as if it had never been seen.
      return undefined;
    }
  }

  #write({ server, ca }: ClusterIdentity): void {
    const known = this.#read();
    if (known?.server === server && known.ca === ca) return;
    if (!existsSync(this.#stateDir)) return;
    const temporary = `${this.#file}.new`;
    mkdirSync(dirname(this.#file), { recursive: true, mode: 0o750 });
    writeFileSync(temporary, `${JSON.stringify({ connection: this.#name, server, ca }, null, 2)}\n`);
    renameSync(temporary, this.#file);
  }
}

function isNeighbour(one: ClusterIdentity, other: ClusterIdentity): boolean {
  const [known, found] = [one, other].map(({ server }) => URL.parse(server));
  return known?.origin === found?.origin && known?.pathname !== found?.pathname;
}

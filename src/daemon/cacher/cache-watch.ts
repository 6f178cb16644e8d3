import { type CacheReader, digestsOf, type TakenData } from '../../config/cric/cache-reader.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';

/**
 * Notices that the cacher's files say something else of the queues that run, whoever fetched them. CRIC changes all the time, and
 * mostly about queues of other factories: that is no change here.
 */
export class CacheWatch {
  readonly #reader: CacheReader;
  readonly #files: OperatorFiles;
  #taken: TakenData | undefined;
  /** The files at the last look, by their times and sizes. */
  #seen = '';

  constructor(reader: CacheReader, files: OperatorFiles) {
    this.#reader = reader;
    this.#files = files;
  }

  /** That a configuration was made of this. */
  use(taken: TakenData | undefined): void {
    this.#taken = taken;
    // It may have changed since it was read.
    this.#seen = '';
  }

  /**
   * Whether a configuration that is read now would be another one. A file that is gone or damaged changes nothing, and a reload waits
   * while a file that was taken is so: it would take the queues of that file away.
   */
  async look(): Promise<'same' | 'changed'> {
    const { paths } = this.#reader;
    if (paths.length === 0 || this.#taken === undefined) return 'same';
    const stats = await Promise.all(paths.map((path) => this.#files.stat(path)));
    const seen = stats.map((stat) => (stat ? `${stat.ino}:${stat.size}:${stat.mtimeMs}` : '-')).join(' ');
    if (seen === this.#seen) return 'same';
    const queueFile = await this.#reader.queueFile();
    const queueData = await this.#reader.queueData(this.#taken.names);
    const now = await digestsOf(queueFile, queueData);
    const before = this.#taken.digests;
    this.#seen = seen;
    const isLost = kinds.some((kind) => before[kind] !== undefined && now[kind] === undefined);
    const isOther = kinds.some((kind) => before[kind] !== now[kind]);
    return isOther && !isLost ? 'changed' : 'same';
  }
}

const kinds = ['queueFile', 'queueData'] as const;

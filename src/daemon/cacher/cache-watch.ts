import type { CacheReader, TakenData } from '../../config/cric/cache-reader.ts';
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

  /** Whether a configuration that is read now would be another one. A file that is gone or damaged changes nothing. */
  async look(): Promise<'same' | 'changed'> {
    const { paths } = this.#reader;
    if (paths.length === 0 || this.#taken === undefined) return 'same';
    const stats = await Promise.all(paths.map((path) => this.#files.stat(path)));
    const seen = stats.map((stat) => (stat ? `${stat.ino}:${stat.size}:${stat.mtimeMs}` : '-')).join(' ');
    if (seen === this.#seen) return 'same';
    const { queueFile, problems: ofFile } = await this.#reader.queueFile();
    const { problems: ofData } = await this.#reader.queueData(this.#taken.names);
    const isWhole = [...ofFile, ...(queueFile?.problems ?? []), ...ofData].every(
      ({ severity, code }) => severity !== 'error' && code !== 'cache-damaged' && code !== 'cache-missing',
    );
    const digest = await this.#reader.digest(this.#taken.names);
    this.#seen = seen;
    return isWhole && digest !== this.#taken.digest ? 'changed' : 'same';
  }
}

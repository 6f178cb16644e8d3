import { jsonWithoutOwn } from '../../util/own-secrets.ts';
import { dirname, join } from 'node:path';
import type { Log } from '../../plugins/contracts/index.ts';
import type { PandaLinkStatus } from '../../plugins/contracts/panda-status.ts';
import type { Clock } from '../../util/clock.ts';
import { ensureDirectory, writeFileAtomically } from '../../util/files.ts';
import { messageOf } from '../../worker/errors.ts';

/** The shortest time between two writes, ms. */
const between = 1000;
/** A status in which times alone changed is written after so long, ms. */
const again = 15_000;

/** Writes the state of the link into a file, for `thresher panda`. A disk that is full costs the file alone. */
export class StatusFile {
  readonly #file: string;
  readonly #clock: Clock;
  readonly #log: Log;
  #written = '';
  /** Monotonic ms. */
  #writtenAt = -Infinity;
  #failed = false;

  constructor(directory: string, { clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#file = join(directory, 'status.json');
    this.#clock = clock;
    this.#log = log;
  }

  /** @param read is called only where the file is due */
  async write(read: () => Omit<PandaLinkStatus, 'writtenAt'>): Promise<void> {
    const since = this.#clock.monotonic() - this.#writtenAt;
    if (since < between) return;
    const status = read();
    const text = JSON.stringify({ ...status, lastAnswers: {}, serverAhead: 0 });
    if (text === this.#written && since < again) return;
    this.#writtenAt = this.#clock.monotonic();
    const whole: PandaLinkStatus = { writtenAt: this.#clock.now(), ...status };
    try {
      await ensureDirectory(dirname(this.#file));
      // Everybody may read it, and most of it is the server's words.
      await writeFileAtomically(this.#file, jsonWithoutOwn(whole), 0o644);
      this.#written = text;
      this.#failed = false;
    } catch (error) {
      if (!this.#failed)
        this.#log.warn('the state of the PanDA link cannot be written', { error: messageOf(error) });
      this.#failed = true;
    }
  }
}

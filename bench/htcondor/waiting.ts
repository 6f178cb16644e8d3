import { closeSync, constants, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { shellTemplate } from '../../test/support/htcondor-site.ts';
import { until } from '../../test/support/until.ts';

/** Pilots that wait until they are told to end, and write down when they do. */
export class WaitingPilots {
  readonly template: Readonly<Record<string, unknown>>;
  /** For bash. */
  readonly script: string;
  readonly #directory: string;

  /** @param directory where they may write */
  constructor(directory: string) {
    this.#directory = directory;
    const [gate, end] = ['gate', 'end'].map((name) => join(directory, `${name}.$HARVESTER_WORKER_ID`));
    // A shell that waits for a named pipe costs nothing. It writes the time last, and starts no program for that.
    this.script = `mkfifo ${gate ?? ''}; read -r line < ${gate ?? ''}; echo $EPOCHREALTIME > ${end ?? ''}`;
    this.template = shellTemplate({ directory }, this.script, { executable: '/bin/bash', request_cpus: 1 });
  }

  /** Waits until all of them wait. @param patience ms */
  async started(count: number, patience: number): Promise<void> {
    const waiting = () => readdirSync(this.#directory).filter((name) => name.startsWith('gate.')).length;
    await until(`${count} jobs have started`, () => waiting() >= count, patience);
    // The last one has made its pipe, and is about to open it.
    await systemClock.sleep(1000);
  }

  end(workerId: number): void {
    const gate = join(this.#directory, `gate.${workerId}`);
    // Without a reader this fails, instead of waiting for one.
    closeSync(openSync(gate, constants.O_WRONLY | constants.O_NONBLOCK));
  }

  /** Its own last moment, ms UTC. */
  lastMoment(workerId: number): number {
    const file = join(this.#directory, `end.${workerId}`);
    if (!existsSync(file)) throw new Error(`the job of worker ${workerId} did not say when it ended`);
    return Number(readFileSync(file, 'utf8')) * 1000;
  }
}

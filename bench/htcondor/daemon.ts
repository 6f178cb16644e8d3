import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Pool } from '../../test/support/htcondor.ts';
import { condorQueue } from '../../test/support/htcondor-site.ts';
import { RealDaemon } from '../shared/daemon.ts';
import { countingPrograms, countsOf, startedPrograms } from './programs.ts';

/** How often each program was started, by its name. */
export type Programs = Readonly<Record<string, number>>;

/** One queue on the pool's own schedd, as a site would have it, and the real program on it. */
export class CondorDaemon extends RealDaemon {
  readonly #pool: Pool;
  readonly #wrapper: string;
  readonly #programs: string;

  constructor(
    directory: string,
    options: {
      readonly pool: Pool;
      readonly environment: Readonly<Record<string, string>>;
      readonly wrapper: string;
      readonly template: object;
      readonly factory: string;
    },
  ) {
    const { pool, environment, wrapper, template, factory } = options;
    const programs = join(directory, 'programs.log');
    super(directory, {
      settings: { master: { factoryId: factory } },
      environment: {
        ...environment,
        ...countingPrograms(programs),
      },
    });
    chmodSync(directory, 0o755);
    this.#pool = pool;
    this.#wrapper = wrapper;
    this.#programs = programs;
    writeFileSync(join(directory, 'pilot.yaml'), stringify(template));
    this.want(0);
  }

  /** So many workers from now on; 0: no more than there are. */
  want(workers: number): void {
    // The jobs are not those of the daemon's user here, who could not write a log of its own.
    const submitter = { executableFile: this.#wrapper, eventLog: this.#pool.eventLog };
    const options = { template: 'pilot.yaml', submitter };
    // As often as it comes.
    const queue = condorQueue(this.#pool, { ...options, monitor: { pollInterval: 10 } });
    this.wantOf(pluginsOf(queue), workers);
  }

  /** Counts of all programs that it started. */
  programs(): Programs {
    return countsOf(startedPrograms(this.#programs));
  }

  /** That workers are adopted is on purpose here, and the log of a new pool begins with the first job. */
  override complaints(): string[] {
    const expected = ['adopted workers without a row', 'of eventLog does not exist'];
    return super.complaints().filter((line) => !expected.some((words) => line.includes(words)));
  }
}

/** How many workers there shall be is for the benchmark to say. */
export function pluginsOf({ submitter, monitor, sweeper }: Readonly<Record<string, unknown>>) {
  return { submitter, monitor, sweeper };
}

/** The programs that it started in between. */
export function programsBetween(before: Programs, after: Programs): Programs {
  return Object.fromEntries(
    Object.entries(after)
      .map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  );
}

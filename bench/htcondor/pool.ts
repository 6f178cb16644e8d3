import { execFile, execFileSync } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { HTCondorClient } from '../../src/clients/htcondor/client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { clientOf, ownPool, type Pool, type ScheddKind } from '../../test/support/htcondor.ts';
import { condorEnvironment } from '../../test/support/htcondor-site.ts';

const run = promisify(execFile);

/** The tests' pool does these every two seconds, so that tests need not wait. Here they stay as HTCondor has them: they cost the schedd. */
const settings = [
  ...['PERIODIC_EXPR_INTERVAL = 60', 'NEGOTIATOR_UPDATE_INTERVAL = 300', 'UPDATE_INTERVAL = 300'],
  ...['STARTER_UPDATE_INTERVAL = 300', 'STARTER_INITIAL_UPDATE_INTERVAL = 300'],
  ...['SHADOW_QUEUE_UPDATE_INTERVAL = 900', 'MASTER_UPDATE_INTERVAL = 300', 'POLLING_INTERVAL = 5'],
  // Jobs of the scheduler universe, many of them at once.
  ...['START_SCHEDULER_UNIVERSE = TotalSchedulerJobsRunning < 10000', 'JOB_START_COUNT = 2000'],
  'MAX_RUNNING_SCHEDULER_JOBS_PER_OWNER = 10000',
];

export interface BenchPool {
  readonly pool: Pool;
  /** "23.9.6" */
  readonly version: string;
  /** Where jobs and schedds can write. */
  readonly directory: string;
  /** For HTCondor's commands, whoever starts them. */
  readonly environment: Readonly<Record<string, string>>;
  readonly stop: () => Promise<void>;
}

/** A pool that nobody else talks to. @param more lines of its configuration */
export async function startBenchPool(more: readonly string[] = []): Promise<BenchPool> {
  const pool = await ownPool([...settings, ...more]);
  const stopNow = () => {
    execFileSync(process.execPath, [join(import.meta.dirname, 'stop-pool.ts'), dirname(pool.directory)]);
  };
  process.once('exit', stopNow);
  const stop = async () => {
    await pool.stop();
    process.off('exit', stopNow);
  };
  const { stdout } = await run(join(pool.programs, 'condor_version'), {
    env: { CONDOR_CONFIG: pool.local.config },
  });
  const version = /CondorVersion: (\S+)/.exec(stdout)?.[1] ?? 'unknown';
  const directory = join(pool.directory, 'bench');
  openDirectory(pool, directory);
  const environment = condorEnvironment(pool, directory);
  return { pool, version, directory, environment, stop };
}

/** Makes a directory of whoever the jobs are. */
export function openDirectory({ uid, gid }: Pool, directory: string): void {
  mkdirSync(directory);
  chownSync(directory, uid, gid);
}

/** A schedd as the benchmark itself speaks to it. */
export class BenchSchedd {
  readonly #client: HTCondorClient;
  readonly #signal = new AbortController().signal;

  constructor(pool: Pool, kind: ScheddKind) {
    this.#client = clientOf(pool, kind);
  }

  async count(): Promise<number> {
    return (await this.#client.queue('true', ['ClusterId'], this.#signal)).length;
  }

  async submit(text: string): Promise<void> {
    await this.#client.submit(text, {}, this.#signal);
  }

  /** Removes all jobs, and waits until they are gone. */
  async empty(): Promise<void> {
    await this.#client.act('remove', 'true', 'the next round begins', this.#signal);
    const end = performance.now() + 300_000;
    while ((await this.count()) > 0) {
      if (performance.now() > end) throw new Error('in vain waited for: the queue of the schedd is empty');
      await systemClock.sleep(250);
    }
  }
}

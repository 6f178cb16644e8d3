import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { condorQueue } from '../../test/support/htcondor-site.ts';
import { runChild } from '../shared/children.ts';
import { RealDaemon } from '../shared/daemon.ts';
import { pluginsOf } from './daemon.ts';
import type { Looks, LooksOptions } from './looks.ts';
import { neverMatches, pilotTemplate, writeWrapper } from './pilot.ts';
import { type BenchPool, BenchSchedd, openDirectory } from './pool.ts';

/** Nothing else in the daemon sleeps for so long, s. */
const pause = 7.5;

export interface Poll extends Looks {
  readonly workers: number;
}

/** One look at many jobs of a schedd that is asked by name: one that is local may tell of them by its event log. */
export async function measurePoll(
  { pool, directory: open, environment }: BenchPool,
  directory: string,
  { workers, rounds }: { readonly workers: number; readonly rounds: number },
): Promise<Poll> {
  const jobs = join(open, 'poll');
  openDirectory(pool, jobs);
  const executableFile = writeWrapper(jobs);
  const factory = 'bench-poll';
  const site = new RealDaemon(join(directory, 'poll'), {
    settings: { master: { factoryId: factory }, submitter: { maxNewWorkers: 1000 } },
  });
  chmodSync(site.directory, 0o755);
  const template = pilotTemplate(jobs, { ...neverMatches, initialdir: jobs });
  writeFileSync(join(site.directory, 'pilot.yaml'), stringify(template));
  // Its files are on this machine.
  const submitter = { executableFile, useSpool: false };
  const monitor = { pollInterval: pause };
  const asked = { template: 'pilot.yaml', kind: 'remote', submitter, monitor } as const;
  site.wantOf(pluginsOf(condorQueue(pool, asked)), workers);
  const options: LooksOptions = {
    directory: site.directory,
    factory,
    schedd: pool.remote.schedd,
    pool: pool.pool,
    workers,
    rounds,
    environment,
    pause: pause * 1000,
  };
  const looks = await runChild<Looks>(join(import.meta.dirname, 'looks.ts'), JSON.stringify(options));
  await new BenchSchedd(pool, 'remote').empty();
  return { workers, ...looks };
}

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { adText } from '../../src/clients/htcondor/ad-text.ts';
import { PoolClient } from '../../src/clients/htcondor/pool-client.ts';
import { PoolLooker } from '../../src/sources/htcondor-idle/look/index.ts';
import type { Template } from '../../src/sources/htcondor-idle/look/result.ts';
import { systemClock } from '../../src/util/clock.ts';
import { clientOf, placeOf } from '../../test/support/htcondor.ts';
import type { BenchPool } from '../htcondor/pool.ts';
import { progress } from './progress.ts';

/** One look. */
export interface AskedLook {
  /** ms */
  readonly time: number;
  readonly counted: number;
  /** Programs that it started, by name; those that ask a schedd for jobs by `schedd:`. */
  readonly programs: Readonly<Record<string, number>>;
  /** Bytes after it. */
  readonly rss: number;
}

export interface Asked {
  readonly jobs: number;
  readonly kinds: number;
  readonly looks: readonly AskedLook[];
  readonly complaints: readonly string[];
}

const kinds = 1000;
const looks = 5;

/** Very many waiting jobs on one schedd: each look asks it for a projection once. */
export async function measureAsked(bench: BenchPool, directory: string, jobs: number): Promise<Asked> {
  const { pool } = bench;
  const { signal } = new AbortController();
  const client = clientOf(pool, 'local', {}, 3_600_000);
  for (let left = jobs; left > 0; left -= 10_000) {
    progress(`${left} jobs are left to submit`);
    await client.submit(jobText(Math.min(left, 10_000)), {}, signal);
  }
  const log = join(directory, 'programs.log');
  const place = {
    ...placeOf(pool, 'local'),
    toolDirectory: wrapped(pool.programs, join(directory, 'bin'), log),
  };
  const client2 = new PoolClient({ place, clock: systemClock, environment: process.env });
  const [machine] = await client2.adTexts('slots', { attributes: [] }, (ad) => ad, signal);
  const ad = adText(new Map([...(machine ?? []), ['memory', '200000'], ['nosuch', 'true']]));
  const resources = new Map([
    ['cpus', 8],
    ['memory', 200_000],
  ]);
  const template: Template = {
    shape: { key: 'queue', queue: 'queue', resources, oneJob: false, cost: 1, most: Infinity },
    ad,
  };
  const looker = new PoolLooker({
    pool: client2,
    clock: systemClock,
    factoryId: 'bench',
    schedds: [pool.local.schedd],
  });
  const taken: AskedLook[] = [];
  for (let tries = 0; taken.length < looks && tries < 60; tries++) {
    writeFileSync(log, '');
    const begun = performance.now();
    const look = await looker.look([template], signal);
    const time = performance.now() - begun;
    const counted = look.needs.reduce((sum, { count }) => sum + count, 0);
    const unknown = look.unknown.map(({ part, reason }) => `; ${part}: ${reason.message}`).join('');
    progress(`${counted} jobs of ${look.needs.length} kinds in ${(time / 1000).toFixed(1)} s${unknown}`);
    // A cycle passes over them before they count.
    if (counted === jobs)
      taken.push({ time, counted, programs: programsOf(log), rss: process.memoryUsage().rss });
    else await sleep(2000);
  }
  return { jobs, kinds, looks: taken, complaints: [] };
}

function jobText(count: number): string {
  return [
    ...['executable = /bin/true', 'transfer_executable = false', 'request_disk = 10'],
    // A schedd compares expressions by their texts: each job of a kind has the same number.
    'request_memory = $(memory)',
    'requirements = TARGET.NoSuch is true',
    `queue ${Math.ceil(count / kinds)} memory from (`,
    ...Array.from({ length: kinds }, (_, index) => `${100 + index * 128}`),
    ')',
    '',
  ].join('\n');
}

/** Commands that write down that they were started, and with what, before they do what they do. */
function wrapped(programs: string, directory: string, log: string): string {
  mkdirSync(directory);
  for (const name of ['condor_q', 'condor_status', 'condor_userprio', 'condor_config_val']) {
    const file = join(directory, name);
    writeFileSync(file, `#!/bin/sh\necho "${name} $*" >> ${log}\nexec ${join(programs, name)} "$@"\n`);
    chmodSync(file, 0o755);
  }
  return directory;
}

function programsOf(log: string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const line of readFileSync(log, 'utf8')
    .split('\n')
    .filter((one) => one !== '')) {
    const [name = ''] = line.split(' ');
    const isSchedd = name === 'condor_q' && !line.includes('-jobads');
    const key = isSchedd ? `schedd: condor_q ${line.includes('-long') ? '-long' : '-af'}` : name;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

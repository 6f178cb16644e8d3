import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pMap from 'p-map';
import { type AdText, adText, closureOf } from '../../src/clients/htcondor/ad-text.ts';
import { PoolClient } from '../../src/clients/htcondor/pool-client.ts';
import { CondorTools } from '../../src/clients/htcondor/tools.ts';
import { decide } from '../../src/sources/htcondor-idle/decide.ts';
import { sign } from '../../src/sources/htcondor-idle/look/answers.ts';
import { MatchTable } from '../../src/sources/htcondor-idle/look/matching.ts';
import { signedJob } from '../../src/sources/htcondor-idle/look/job-names.ts';
import type { Need, Shape } from '../../src/sources/htcondor-idle/model.ts';
import { requestOf } from '../../src/sources/htcondor-idle/request-sizes.ts';
import { systemClock } from '../../src/util/clock.ts';
import { placeOf } from '../../test/support/htcondor.ts';
import type { BenchPool } from '../htcondor/pool.ts';
import { progress } from './progress.ts';

export interface Decisions {
  readonly jobs: number;
  readonly kinds: number;
  readonly templates: number;
  /** Each round: the bare commands, then a decision from nothing, then one that knows all answers; ms. */
  readonly rounds: readonly { readonly bare: number; readonly first: number; readonly next: number }[];
  readonly workers: number;
  readonly complaints: readonly string[];
}

const kinds = 500;
const templates = 50;
const rounds = 5;
/** Commands at once, on both sides. */
const atOnce = 4;

/** One decision over many kinds of jobs and shapes, beside the commands of HTCondor that it cannot do without. */
export async function measureDecision(bench: BenchPool, directory: string, jobs: number): Promise<Decisions> {
  const place = placeOf(bench.pool, 'local');
  const options = { place, clock: systemClock, environment: process.env };
  const pool = new PoolClient(options);
  const { signal } = new AbortController();
  const [machine] = await pool.adTexts('slots', { attributes: [] }, (ad) => ad, signal);
  if (machine === undefined) throw new Error('the pool has no slot');
  const ads = Array.from({ length: kinds }, (_, index) => jobAd(index));
  const shapes = Array.from({ length: templates }, (_, index) => shapeOf(machine, index));
  const files = join(directory, 'decision');
  mkdirSync(files);
  const jobsFile = join(files, 'jobs.ad');
  writeFileSync(jobsFile, ads.map(adText).join(''));
  const slotFiles = shapes.map(({ ad }, index) => {
    const file = join(files, `slot-${index}.ad`);
    writeFileSync(file, adText(ad));
    return file;
  });
  const tools = new CondorTools({ ...options, atOnce });
  const bare = () =>
    pMap(
      slotFiles,
      async (file) => {
        const args = ['-allusers', '-jobads:long', jobsFile, '-slotads:long', file, '-analyze:summary'];
        await tools.run(
          { command: 'condor_q', args, target: 'files', changes: false, timeLimit: 60_000 },
          signal,
        );
      },
      { concurrency: atOnce },
    );
  const taken: { bare: number; first: number; next: number }[] = [];
  let workers = 0;
  for (let round = 0; round < rounds; round++) {
    progress(`decision ${round + 1} of ${rounds}`);
    const times = { bare: 0, first: 0, next: 0 };
    const table = new MatchTable(pool.matchmaker, () => performance.now());
    times.bare = await timed(bare);
    times.first = await timed(async () => {
      workers = await decideOnce(table, ads, shapes, jobs, signal);
    });
    times.next = await timed(() => decideOnce(table, ads, shapes, jobs, signal));
    taken.push(times);
  }
  return { jobs, kinds, templates, rounds: taken, workers, complaints: [] };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

interface BenchShape {
  readonly shape: Shape;
  readonly ad: AdText;
}

/** As a look and a decision do it, from ads of jobs to workers of shapes. */
async function decideOnce(
  table: MatchTable,
  ads: readonly AdText[],
  shapes: readonly BenchShape[],
  jobs: number,
  signal: AbortSignal,
): Promise<number> {
  const seen = shapes.map(({ shape, ad }) => ({ shape, signed: sign(ad) }));
  const foreign = new Set(
    seen.flatMap(({ signed }) => [...closureOf(signed.ad, ['requirements', 'start']).other]),
  );
  const represented = ads.map((ad, index) => {
    const asked = new Map(
      ['cpus', 'memory', 'disk', 'gpus'].map((name) => [name, Number(ad.get(`request${name}`) ?? 0)]),
    );
    const count = Math.floor(jobs / ads.length);
    const key = `bench#${index}`;
    const need: Need = {
      key,
      schedd: 'bench',
      count,
      owners: new Map([['user', count]]),
      ...requestOf(asked),
      concurrency: new Map(),
    };
    return { need, signed: signedJob(ad, foreign) };
  });
  await table.fill(
    represented.map(({ signed }) => ({ ...signed, owner: 'user' })),
    seen.map(({ signed }) => signed),
    [],
    signal,
  );
  const jobsByKey = new Map(represented.map(({ need, signed }) => [need.key, signed.signature]));
  const slotsByKey = new Map(seen.map(({ shape, signed }) => [shape.key, signed.signature]));
  const decision = decide(
    {
      needs: represented.map(({ need }) => need),
      shapes: seen.map(({ shape }) => shape),
      spaces: [],
      matching: {
        shape: (need, { key }) => table.answer(slotsByKey.get(key) ?? '', jobsByKey.get(need.key) ?? ''),
        space: () => false,
        pool: () => false,
      },
      unknown: [],
      workers: new Map(),
      free: new Map(),
    },
    new Map(),
  );
  return decision.shapes.reduce((sum, one) => sum + one.workers, 0);
}

function shapeOf(machine: AdText, index: number): BenchShape {
  const cpus = 1 + (index % 16);
  const memory = 2000 * (1 + (index % 25));
  const gpus = index % 10 === 0 ? 2 : 0;
  const values: [string, string][] = [
    ['cpus', `${cpus}`],
    ['memory', `${memory}`],
    ['gpus', `${gpus}`],
    ['name', `"slot1@shape${index}"`],
    ['haslabel', index % 3 === 0 ? 'true' : 'false'],
  ];
  const key = `queue/${index}`;
  const resources = new Map([
    ...values.slice(0, 3).map(([name, value]): [string, number] => [name, Number(value)]),
    ['disk', 50_000_000],
  ]);
  const shape = { key, queue: 'queue', resources, oneJob: false, cost: cpus, most: Infinity };
  return { shape, ad: new Map([...machine, ['disk', '50000000'], ['start', 'true'], ...values]) };
}

/** As much as the ad of a real job: some of it tells nothing of a match. */
function jobAd(index: number): AdText {
  const gpus: [string, string][] = index % 25 === 0 ? [['requestgpus', `${1 + (index % 2)}`]] : [];
  const conditions = [
    '(TARGET.Arch == "X86_64")',
    '(TARGET.OpSys == "LINUX")',
    '(TARGET.Disk >= RequestDisk)',
    '(TARGET.Memory >= RequestMemory)',
    '(TARGET.Cpus >= RequestCpus)',
    ...(gpus.length > 0 ? ['(TARGET.GPUs >= RequestGPUs)'] : []),
    ...(index % 5 === 0 ? ['(TARGET.HasLabel is true)'] : []),
  ];
  const filler = Array.from({ length: 80 }, (_, one): [string, string] => [
    `benchattribute${one}`,
    `"${'x'.repeat(30)}"`,
  ]);
  return new Map([
    ['mytype', '"Job"'],
    ['targettype', '"Machine"'],
    ['clusterid', `${index + 1}`],
    ['procid', '0'],
    ['autoclusterid', `${index + 1}`],
    ['jobstatus', '1'],
    ['jobuniverse', '5'],
    ['owner', '"user"'],
    ['user', '"user@bench"'],
    ['requestcpus', `${1 + (index % 8)}`],
    ['requestmemory', `${500 + index * 90}`],
    ['requestdisk', `${1000 + index}`],
    ...gpus,
    ['requirements', conditions.join(' && ')],
    ...filler,
  ]);
}

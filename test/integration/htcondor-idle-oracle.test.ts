import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import { adText } from '../../src/clients/htcondor/ad-text.ts';
import { Matchmaker } from '../../src/clients/htcondor/matchmaker.ts';
import { CondorTools } from '../../src/clients/htcondor/tools.ts';
import { decide } from '../../src/sources/htcondor-idle/decide.ts';
import type { Matching } from '../../src/sources/htcondor-idle/model.ts';
import { systemClock } from '../../src/util/clock.ts';
import { condorPool, type Pool } from '../support/htcondor.ts';
import { factsOf, needOf, shapeOf, termsOf } from '../support/idle-demand.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const run = promisify(execFile);

/** Requirements of jobs, and START of machines: sizes, custom attributes, owners. A match needs both. */
const wishes = [
  'true',
  'TARGET.HasLake =?= true',
  'TARGET.Arch == "aarch64"',
  'TARGET.Cpus >= 2 * RequestCpus',
];
const starts = ['true', 'TARGET.Owner != "bob"', 'TARGET.RequestMemory < 2000', 'TARGET.RequestGPUs >= 1'];

const someJob = fc.record({
  count: fc.integer({ min: 1, max: 4 }),
  cpus: fc.integer({ min: 1, max: 6 }),
  memory: fc.integer({ min: 1, max: 6000 }),
  gpus: fc.constantFrom(0, 0, 0, 1, 2),
  owner: fc.constantFrom('alice', 'bob'),
  wish: fc.constantFrom(...wishes),
});
const someMachine = fc.record({
  cpus: fc.integer({ min: 1, max: 8 }),
  memory: fc.integer({ min: 500, max: 8000 }),
  gpus: fc.constantFrom(0, 0, 1, 2),
  arch: fc.constantFrom('X86_64', 'aarch64'),
  lake: fc.boolean(),
  start: fc.constantFrom(...starts),
});
type Job = typeof someJob extends fc.Arbitrary<infer Value> ? Value : never;
type Machine = typeof someMachine extends fc.Arbitrary<infer Value> ? Value : never;

const jobAd = ({ cpus, memory, gpus, owner, wish }: Job) =>
  new Map([
    ['MyType', '"Job"'],
    ['TargetType', '"Machine"'],
    ['Owner', `"${owner}"`],
    ['User', `"${owner}@pool.test"`],
    ['JobUniverse', '5'],
    ['JobStatus', '1'],
    ['RequestCpus', `${cpus}`],
    ['RequestMemory', `${memory}`],
    ['RequestDisk', '1024'],
    ['RequestGPUs', `${gpus}`],
    [
      'Requirements',
      `(${wish}) && TARGET.Cpus >= RequestCpus && TARGET.Memory >= RequestMemory && TARGET.GPUs >= RequestGPUs`,
    ],
  ]);

const slotAd = ({ cpus, memory, gpus, arch, lake, start }: Machine, name: string) =>
  new Map([
    ['MyType', '"Machine"'],
    ['TargetType', '"Job"'],
    ['Name', `"slot1@${name}"`],
    ['Machine', `"${name}"`],
    ['State', '"Unclaimed"'],
    ['Activity', '"Idle"'],
    ['Arch', `"${arch}"`],
    ['OpSys', '"LINUX"'],
    ['Cpus', `${cpus}`],
    ['Memory', `${memory}`],
    ['Disk', '10000000'],
    ['GPUs', `${gpus}`],
    ['HasLake', `${lake}`],
    ['START', `(${start})`],
    ['Requirements', 'START'],
  ]);

/** How many machines HTCondor's greedy one-job-per-machine matching fills. */
async function oracle(pool: Pool, jobs: readonly Job[], machines: readonly Machine[]): Promise<number> {
  const directory = temporaryDirectory();
  const total = jobs.reduce((sum, { count }) => sum + count, 0);
  const each = jobs.flatMap((job) => Array.from({ length: job.count }, () => jobAd(job)));
  const ids = each.map((ad, index) => new Map([['ClusterId', `${index + 1}`], ['ProcId', '0'], ...ad]));
  // So many of each that no job lacks its machine because of another.
  const copies = machines.flatMap((machine, index) =>
    Array.from({ length: total }, (_, copy) => slotAd(machine, `m${index}-${copy}`)),
  );
  const write = async (name: string, ads: readonly ReadonlyMap<string, string>[]) => {
    await writeFile(join(directory, name), ads.map((ad) => `${adText(ad).trimEnd()}\n\n`).join(''));
    return join(directory, name);
  };
  const args = [
    ...['-machine-ads', await write('machines.ad', copies)],
    ...['-job-ads', await write('jobs.ad', ids)],
    ...['-claimed', 'false', 'demand'],
  ];
  const env = { ...process.env, CONDOR_CONFIG: pool.local.config };
  const { stdout } = await run(join(pool.programs, 'condor_test_match'), args, { env, timeout: 60_000 });
  const found = /\((\d+) of \d+\)/.exec(stdout);
  if (found === null) throw new Error(`condor_test_match printed no fraction: ${stdout}`);
  return Number(found[1]);
}

/** HTCondor's answers about each pair, as the source asks for them. */
async function matchingOf(pool: Pool, jobs: readonly Job[], machines: readonly Machine[]): Promise<Matching> {
  const place = { toolDirectory: pool.programs, configFile: pool.local.config };
  const tools = new CondorTools({ place, clock: systemClock, environment: process.env });
  const answers = await new Matchmaker(tools).withJobs(jobs.map(jobAd), (laid) =>
    Promise.all(
      machines.map((machine, index) =>
        laid.matches(slotAd(machine, `m${index}`), new AbortController().signal),
      ),
    ),
  );
  return {
    shape: ({ key }, shape) => answers[Number(shape.key.slice(1))]?.[Number(key.replace('schedd#', ''))],
    space: () => false,
    pool: () => false,
  };
}

describe('the demand of a pool beside condor_test_match', () => {
  let pool: Pool;
  before(async () => {
    pool = await condorPool();
  });

  const sets = fc.record({
    jobs: fc.array(someJob, { minLength: 1, maxLength: 8 }),
    machines: fc.array(someMachine, { minLength: 1, maxLength: 4 }),
  });

  it('covers exactly the jobs that HTCondor matches, with one machine for each where a machine takes one', async () => {
    let some = 0;
    await fc.assert(
      fc.asyncProperty(sets, async ({ jobs, machines }) => {
        const [matched, matching] = await Promise.all([
          oracle(pool, jobs, machines),
          matchingOf(pool, jobs, machines),
        ]);
        const needs = jobs.map(({ count, cpus, memory, gpus }, index) =>
          needOf(`${index}`, count, { cpus, memory, gpus }),
        );
        const shapes = machines.map(({ cpus, memory, gpus }, index) =>
          shapeOf(`m${index}`, cpus, { has: { memory, gpus, disk: 10_000_000 }, oneJob: true }),
        );
        const { jobs: counts, shapes: decided } = decide(factsOf({ needs, shapes, matching }), termsOf({}));
        expect(counts).to.include({ served: matched, unservable: counts.idle - matched, unknown: 0 });
        expect(decided.reduce((sum, { workers }) => sum + workers, 0)).to.equal(matched);

        // Partitionable, the same machines cover the same jobs, and there are no more of them.
        const whole = decide(
          factsOf({ needs, shapes: shapes.map((shape) => ({ ...shape, oneJob: false })), matching }),
          termsOf({}),
        );
        expect(whole.jobs).to.include({ served: matched });
        expect(whole.shapes.reduce((sum, { workers }) => sum + workers, 0)).to.be.at.most(matched);
        if (matched > 0 && matched < counts.idle) some += 1;
      }),
      { numRuns: 25 },
    );
    // Sets of which all or nothing matches would show little.
    expect(some).to.be.above(3);
  });
});

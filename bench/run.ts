/** `npm run bench -- NAME ...`: every benchmark there is. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { benchDay } from './core/day/index.ts';
import type { Replay } from './core/day/replay.ts';
import { benchCore } from './core/index.ts';
import { benchCoreOnPostgresql } from './core/postgresql.ts';
import { benchTakeover } from './core/takeover.ts';
import { benchHTCondor, parts as partsOfHTCondor } from './htcondor/index.ts';
import { benchHtcJob, parts as partsOfHtcJob } from './htcjob/index.ts';
import { benchInterlink, parts as partsOfInterlink } from './interlink/index.ts';
import { benchKubernetes, parts as partsOfKubernetes } from './kubernetes/index.ts';
import { benchPanda, parts as partsOfPanda } from './panda/index.ts';
import { benchPools, parts as partsOfPools } from './pools/index.ts';
import { benchSources, parts as partsOfSources } from './sources/index.ts';
import { benchStart } from './start/index.ts';
import type { Options } from './shared/parts.ts';

interface Benchmark {
  readonly run: (options: Options) => Promise<void>;
  /** The parts that can be measured by themselves; none where the benchmark has one size only. */
  readonly parts: readonly string[];
  /** Nothing of it can be tried with fewer workers. */
  readonly isOneSize?: true;
}

const benchmarks: Readonly<Record<string, Benchmark>> = {
  start: { run: ({ resultsDirectory }) => benchStart(resultsDirectory), parts: [], isOneSize: true },
  core: {
    run: ({ resultsDirectory, part }) => {
      if (command.database !== 'postgresql') return benchCore(resultsDirectory);
      if (part === 'takeover') return benchTakeover(resultsDirectory);
      if (part === 'day') return benchDay(resultsDirectory, command.replay);
      return benchCoreOnPostgresql(resultsDirectory);
    },
    parts: ['takeover', 'day'],
    isOneSize: true,
  },
  kubernetes: { run: benchKubernetes, parts: partsOfKubernetes },
  htcondor: { run: benchHTCondor, parts: partsOfHTCondor },
  sources: { run: benchSources, parts: partsOfSources },
  panda: { run: benchPanda, parts: partsOfPanda },
  htcjob: { run: benchHtcJob, parts: partsOfHtcJob },
  interlink: { run: benchInterlink, parts: partsOfInterlink },
  pools: { run: benchPools, parts: partsOfPools },
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    // Children and temporary directories go with it.
    process.exit(1);
  });
}

const usage = `usage: npm run bench -- ${Object.keys(benchmarks).join(' | ')} [--workers N] [--part PART]
       npm run bench -- core [--database sqlite | postgresql]
       npm run bench -- core --database postgresql --part takeover
       npm run bench -- core --database postgresql --part day [--hours N] [--speed N]

Of \`kubernetes\`, \`htcondor\`, \`sources\`, \`panda\`, \`htcjob\`, \`interlink\` and \`pools\`:

  --workers N  a quick try with so many live workers, 100 to 10000: less than that is not kept
  --part PART  only that; the others stay as they were measured last
               kubernetes: ${partsOfKubernetes.join(', ')}
               htcondor: ${partsOfHTCondor.join(', ')}
               sources: ${partsOfSources.join(', ')}
               panda: ${partsOfPanda.join(', ')}
               htcjob: ${partsOfHtcJob.join(', ')}
               interlink: ${partsOfInterlink.join(', ')}
               pools: ${partsOfPools.join(', ')}

Of \`core --database postgresql --part day\`:

  --hours N    only the first N of 24 simulated hours
  --speed N    N times the speed; default 10
`;

interface Command extends Pick<Options, 'workers' | 'part'> {
  readonly names: readonly string[];
  readonly database: string;
  /** How much of the day is replayed, and how fast. */
  readonly replay: Replay;
}

function readCommand(): Command {
  const { values, positionals: names } = parseArgs({
    allowPositionals: true,
    options: {
      workers: { type: 'string' },
      part: { type: 'string' },
      database: { type: 'string' },
      hours: { type: 'string' },
      speed: { type: 'string' },
    },
  });
  const unknown = names.filter((name) => !Object.hasOwn(benchmarks, name));
  if (unknown.length > 0) throw new Error(`there is no benchmark ${unknown.join(', ')}`);
  if (names.length === 0) throw new Error('no benchmark is named');
  const { database = 'sqlite' } = values;
  if (!['sqlite', 'postgresql'].includes(database))
    throw new Error(`--database is "${database}": write sqlite or postgresql`);
  if (values.database !== undefined && names.some((name) => name !== 'core'))
    throw new Error('only core has --database');
  const isFixed = (name: string) =>
    values.workers === undefined ? benchmarks[name]?.parts.length === 0 : benchmarks[name]?.isOneSize;
  const fixed = names.find(isFixed);
  if ((values.workers ?? values.part) !== undefined && fixed !== undefined)
    throw new Error(`${fixed} has one size only`);
  if (values.part !== undefined && names.includes('core') && database !== 'postgresql')
    throw new Error('only core --database postgresql has --part takeover or day');
  const workers = values.workers === undefined ? undefined : Number(values.workers);
  if (workers !== undefined && !(Number.isInteger(workers) && workers >= 100 && workers <= 10_000))
    throw new Error(`--workers is "${values.workers ?? ''}": write a number from 100 to 10000`);
  const { part } = values;
  for (const name of names) {
    const parts = benchmarks[name]?.parts ?? [];
    if (part !== undefined && !parts.includes(part))
      throw new Error(`--part is "${part}": of ${name} write one of ${parts.join(', ')}`);
  }
  if ((values.hours ?? values.speed) !== undefined && part !== 'day')
    throw new Error('only --part day has --hours and --speed');
  const replay = {
    hours: readNumber('hours', values.hours ?? '24', 24),
    speed: readNumber('speed', values.speed ?? '10', 100),
  };
  return { names, workers, part, database, replay };
}

function readNumber(option: string, given: string, most: number): number {
  const number = Number(given);
  if (number > 0 && number <= most) return number;
  throw new Error(`--${option} is "${given}": write a number above 0, up to ${most}`);
}

let command: Command;
try {
  command = readCommand();
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  process.exit(2);
}
const resultsDirectory = join(import.meta.dirname, 'results');
for (const name of command.names) await benchmarks[name]?.run({ resultsDirectory, ...command });

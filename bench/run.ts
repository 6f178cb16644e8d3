/** `npm run bench -- NAME ...`: every benchmark there is. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { benchCore } from './core/index.ts';
import { benchHTCondor, parts as partsOfHTCondor } from './htcondor/index.ts';
import { benchHtcJob, parts as partsOfHtcJob } from './htcjob/index.ts';
import { benchKubernetes, parts as partsOfKubernetes } from './kubernetes/index.ts';
import { benchPanda, parts as partsOfPanda } from './panda/index.ts';
import { benchSources, parts as partsOfSources } from './sources/index.ts';
import { benchStart } from './start/index.ts';
import type { Options } from './shared/parts.ts';

interface Benchmark {
  readonly run: (options: Options) => Promise<void>;
  /** The parts that can be measured by themselves; none where the benchmark has one size only. */
  readonly parts: readonly string[];
}

const benchmarks: Readonly<Record<string, Benchmark>> = {
  start: { run: ({ resultsDirectory }) => benchStart(resultsDirectory), parts: [] },
  core: { run: ({ resultsDirectory }) => benchCore(resultsDirectory), parts: [] },
  kubernetes: { run: benchKubernetes, parts: partsOfKubernetes },
  htcondor: { run: benchHTCondor, parts: partsOfHTCondor },
  sources: { run: benchSources, parts: partsOfSources },
  panda: { run: benchPanda, parts: partsOfPanda },
  htcjob: { run: benchHtcJob, parts: partsOfHtcJob },
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    // Children and temporary directories go with it.
    process.exit(1);
  });
}

const usage = `usage: npm run bench -- ${Object.keys(benchmarks).join(' | ')} [--workers N] [--part PART]

Of \`kubernetes\`, \`htcondor\`, \`sources\`, \`panda\` and \`htcjob\`:

  --workers N  a quick try with so many live workers, 100 to 10000: less than that is not kept
  --part PART  only that; the others stay as they were measured last
               kubernetes: ${partsOfKubernetes.join(', ')}
               htcondor: ${partsOfHTCondor.join(', ')}
               sources: ${partsOfSources.join(', ')}
               panda: ${partsOfPanda.join(', ')}
               htcjob: ${partsOfHtcJob.join(', ')}
`;

interface Command extends Pick<Options, 'workers' | 'part'> {
  readonly names: readonly string[];
}

function readCommand(): Command {
  const { values, positionals: names } = parseArgs({
    allowPositionals: true,
    options: { workers: { type: 'string' }, part: { type: 'string' } },
  });
  const unknown = names.filter((name) => !Object.hasOwn(benchmarks, name));
  if (unknown.length > 0) throw new Error(`there is no benchmark ${unknown.join(', ')}`);
  if (names.length === 0) throw new Error('no benchmark is named');
  const isQuick = values.workers !== undefined || values.part !== undefined;
  const fixed = names.find((name) => benchmarks[name]?.parts.length === 0);
  if (isQuick && fixed !== undefined) throw new Error(`${fixed} has one size only`);
  const workers = values.workers === undefined ? undefined : Number(values.workers);
  if (workers !== undefined && !(Number.isInteger(workers) && workers >= 100 && workers <= 10_000))
    throw new Error(`--workers is "${values.workers ?? ''}": write a number from 100 to 10000`);
  const { part } = values;
  for (const name of names) {
    const parts = benchmarks[name]?.parts ?? [];
    if (part !== undefined && !parts.includes(part))
      throw new Error(`--part is "${part}": of ${name} write one of ${parts.join(', ')}`);
  }
  return { names, workers, part };
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

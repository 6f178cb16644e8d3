/** `npm run bench -- NAME ...`: every benchmark there is. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { benchCore } from './core/index.ts';
import { benchKubernetes, type Options } from './kubernetes/index.ts';

const benchmarks: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  core: ({ resultsDirectory }) => benchCore(resultsDirectory),
  kubernetes: benchKubernetes,
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    // Children and temporary directories go with it.
    process.exit(1);
  });
}

const usage = `usage: npm run bench -- ${Object.keys(benchmarks).join(' | ')} [--workers N]

  --workers N  for a quick try of \`kubernetes\` with so many live workers, 100 to 10000: nothing is kept of it
`;

function readCommand(): { readonly names: readonly string[]; readonly workers: number | undefined } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { workers: { type: 'string' } },
  });
  const unknown = positionals.filter((name) => !(name in benchmarks));
  if (unknown.length > 0) throw new Error(`there is no benchmark ${unknown.join(', ')}`);
  if (positionals.length === 0) throw new Error('no benchmark is named');
  const workers = values.workers === undefined ? undefined : Number(values.workers);
  if (workers !== undefined && !(Number.isInteger(workers) && workers >= 100 && workers <= 10_000))
    throw new Error(`--workers is "${values.workers ?? ''}": write a number from 100 to 10000`);
  if (workers !== undefined && positionals.includes('core')) throw new Error('core has one size only');
  return { names: positionals, workers };
}

let command: ReturnType<typeof readCommand>;
try {
  command = readCommand();
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  process.exit(2);
}
const resultsDirectory = join(import.meta.dirname, 'results');
for (const name of command.names) await benchmarks[name]?.({ resultsDirectory, workers: command.workers });

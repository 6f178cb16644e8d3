/** `npm run bench -- NAME`: every benchmark there is. */
import { join } from 'node:path';
import { benchCore } from './core/index.ts';

const benchmarks: Readonly<Record<string, (resultsDirectory: string) => Promise<void>>> = {
  core: benchCore,
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    // Children and temporary directories go with it.
    process.exit(1);
  });
}

const names = process.argv.slice(2);
const unknown = names.filter((name) => !(name in benchmarks));
if (names.length === 0 || unknown.length > 0) {
  process.stderr.write(`usage: npm run bench -- ${Object.keys(benchmarks).join(' | ')}\n`);
  process.exit(2);
}
for (const name of names) await benchmarks[name]?.(join(import.meta.dirname, 'results'));

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runChild } from '../shared/children.ts';
import { figuresOf } from './figures.ts';
import type { LiveResult } from './live.ts';
import { machine } from '../shared/machine.ts';
import { progressOf } from '../shared/progress.ts';
import type { RestartResult } from './restart.ts';
import type { Measured } from './measured.ts';
import { pageOf } from './page.ts';
import { paths, writeSite } from './site.ts';

/** Restarts, and runs of the bare reader between them. */
const restarts = 5;

const progress = progressOf('core');
const programOf = (name: string) => join(import.meta.dirname, name);

/** The core without any real backend; the results go to `results/core.json` and `results/core.md`. */
export async function benchCore(resultsDirectory: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'thresher-bench-'));
  const remove = () => {
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);
  try {
    const measured = await measure(directory);
    const date = new Date().toISOString();
    const results = { benchmark: 'core', date, machine: machine(), figures: figuresOf(measured), measured };
    mkdirSync(resultsDirectory, { recursive: true });
    writeFileSync(join(resultsDirectory, 'core.json'), `${JSON.stringify(results, null, 2)}\n`);
    const page = pageOf(results);
    writeFileSync(join(resultsDirectory, 'core.md'), page);
    process.stdout.write(page);
  } finally {
    remove();
    process.off('exit', remove);
  }
}

async function measure(directory: string): Promise<Measured> {
  const original = join(directory, 'live');
  mkdirSync(original);
  writeSite(original);
  progress('a daemon with 100,000 live workers (about two minutes)');
  const live = await runChild<LiveResult>(programOf('live.ts'), original);
  rmSync(`${paths(original).database}.bare`, { force: true });
  const results: RestartResult[] = [];
  const bareReads: number[] = [];
  for (let round = 1; round <= restarts; round++) {
    progress(`restart ${round} of ${restarts}`);
    // Each finds the very state that the killed daemon left.
    const copy = join(directory, `restart-${round}`);
    cpSync(original, copy, { recursive: true });
    results.push(await runChild<RestartResult>(programOf('restart.ts'), copy, String(Date.now())));
    rmSync(copy, { recursive: true });
    cpSync(original, copy, { recursive: true });
    const { database } = paths(copy);
    const bare = await runChild<{ ready: number }>(programOf('read-rows.ts'), database, String(Date.now()));
    bareReads.push(bare.ready);
    rmSync(copy, { recursive: true });
  }
  return { live, restarts: results, bareReads };
}

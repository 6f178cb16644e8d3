import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { machine, type Machine } from './machine.ts';

/** Options of every benchmark. */
export interface Options {
  readonly resultsDirectory: string;
  /** Live workers, for a quick try: less than its full size, nothing is kept of it. */
  readonly workers: number | undefined;
  /** Only this part; the others stay as they were measured last. */
  readonly part: string | undefined;
}

/** Live workers of the figures that are kept. */
export const fullSize = 10_000;

/** When a part was measured, and on what. */
export interface Circumstances {
  readonly date: string;
  readonly machine: Machine;
  /** Load of the machine over a minute: before this part, and after it with the benchmark's own. */
  readonly loads: readonly [number, number];
}

/** Each part of `M` as it was measured last; `With` says what it was measured with. */
export type KeptParts<M, With> = {
  readonly [One in keyof M]?: Circumstances & With & { readonly measured: M[One] };
};

export interface PartsRun<M, With> {
  readonly benchmark: string;
  readonly options: Options;
  /** In the order in which they are measured. */
  readonly parts: readonly (keyof M & string)[];
  readonly measure: { readonly [One in keyof M]: () => Promise<M[One]> };
  readonly measuredWith: With;
  readonly pageOf: (kept: KeptParts<M, With>) => string;
  readonly progress: (what: string) => void;
}

/** Measures one part or all; each goes to `NAME.json` and `NAME.md` as soon as it is there, if it has its full size. */
export async function measureParts<M, With>(run: PartsRun<M, With>): Promise<void> {
  const { benchmark, parts, measure, measuredWith, pageOf, progress } = run;
  const { resultsDirectory, workers = fullSize, part: only } = run.options;
  const results = join(resultsDirectory, `${benchmark}.json`);
  let kept: KeptParts<M, With> = workers < fullSize ? {} : readKept(results);
  for (const part of parts.filter((one) => only === undefined || one === only)) {
    progress(part);
    const before = loadavg()[0] ?? NaN;
    const measured = await measure[part]();
    const loads = [before, loadavg()[0] ?? NaN] as const;
    const circumstances = { date: new Date().toISOString(), machine: machine(), ...measuredWith, loads };
    kept = { ...kept, [part]: { ...circumstances, measured } };
    if (workers < fullSize) continue;
    // A part that was measured stays, whatever becomes of the rest.
    mkdirSync(resultsDirectory, { recursive: true });
    writeFileSync(results, `${JSON.stringify(kept, null, 2)}\n`);
    writeFileSync(join(resultsDirectory, `${benchmark}.md`), pageOf(kept));
  }
  process.stdout.write(pageOf(kept));
}

function readKept<M, With>(file: string): KeptParts<M, With> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as KeptParts<M, With>;
  } catch {
    // Nothing was kept yet.
    return {};
  }
}

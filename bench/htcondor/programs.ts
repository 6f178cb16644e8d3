import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Is told of every program that this process starts from now on, with whichever function of Node. */
export function onProgram(started: (file: string) => void): void {
  subscribe('child_process', (message) => {
    const { process: child } = message as { readonly process: ChildProcess };
    // It is told before the child knows what it will be.
    queueMicrotask(() => {
      started(child.spawnfile);
    });
  });
}

/** A program that a process started. */
export interface Started {
  readonly name: string;
  /** ms UTC. */
  readonly at: number;
}

/** Variables by which a program of Node writes down every program that it starts: in its own process, so that nothing stands between them. */
export function countingPrograms(file: string): Readonly<Record<string, string>> {
  const counter = join(import.meta.dirname, 'count-programs.ts');
  return { NODE_OPTIONS: `--import=${counter}`, BENCH_PROGRAMS: file };
}

/** All that were written down by now. */
export function startedPrograms(file: string): readonly Started[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [name = '', at] = line.split(' ');
      return { name, at: Number(at) };
    });
}

/** How often each program was started, by its name. */
export function countsOf(started: readonly Started[]): Readonly<Record<string, number>> {
  const byName = Map.groupBy(started, ({ name }) => name);
  return Object.fromEntries([...byName].map(([name, some]) => [name, some.length]));
}

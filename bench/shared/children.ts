import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** No child of the benchmark runs longer, ms. */
const longest = 600_000;

/** The flags with which bin/thresher starts Node. */
export function flagsOfTheProgram(): string[] {
  const script = readFileSync(join(import.meta.dirname, '../../bin/thresher'), 'utf8');
  return [...script.matchAll(/(?<=^exec .*)--[a-z][-\w=]*/gm)].map(([flag]) => flag);
}

/**
 * Runs a program of a benchmark until it reports, and ends it with SIGKILL then, as a crash would.
 * @param program its file
 * @throws when it ends without a report.
 */
export async function runChild<T>(program: string, ...args: string[]): Promise<T> {
  const child = fork(program, args, {
    // The flags of the real program, and the collector's: no loader or inspector of whoever started the benchmark.
    execArgv: ['--expose-gc', ...flagsOfTheProgram()],
    timeout: longest,
    killSignal: 'SIGKILL',
  });
  const withParent = () => child.kill('SIGKILL');
  process.once('exit', withParent);
  const ended = once(child, 'exit');
  let result: { readonly value: T } | undefined;
  child.once('message', (value) => {
    result = { value: value as T };
    child.kill('SIGKILL');
  });
  await ended;
  process.off('exit', withParent);
  if (result === undefined) throw new Error(`${program} ended without a result`);
  return result.value;
}

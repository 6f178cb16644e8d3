import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** No child of the benchmark runs longer, ms. */
const longest = 240_000;

/**
 * Runs one of this folder's programs until it reports, and ends it with SIGKILL then, as a crash would.
 * @throws when it ends without a report.
 */
export async function runChild<T>(program: string, ...args: string[]): Promise<T> {
  const child = fork(join(import.meta.dirname, program), args, {
    // Nothing of ours but the flag: no loader or inspector of whoever started the benchmark.
    execArgv: ['--expose-gc'],
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

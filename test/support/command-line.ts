import { runProgram } from '../../src/cli/program.ts';
import { realEnvironment } from '../../src/cli/environment.ts';
import type { CommandResult } from './site.ts';

/** Runs one command line in this process: for subcommands that read files and print, many times over. */
export async function runHere(...args: string[]): Promise<CommandResult> {
  const collect = () => {
    const written = { text: '' };
    const stream = {
      write(piece: string) {
        written.text += piece;
        return true;
      },
    } as NodeJS.WriteStream;
    return { written, stream };
  };
  const out = collect();
  const err = collect();
  const status = await runProgram(args, { ...realEnvironment, out: out.stream, err: err.stream });
  return { status, stdout: out.written.text, stderr: err.written.text };
}

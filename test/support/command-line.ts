import { Writable } from 'node:stream';
import { runProgram } from '../../src/cli/program.ts';
import { realEnvironment } from '../../src/cli/environment.ts';

export interface CommandResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command line in this process: for subcommands that read files and print, many times over. */
export async function runHere(...args: string[]): Promise<CommandResult> {
  const collect = () => {
    const pieces: string[] = [];
    const stream = new Writable({
      write(piece: Buffer, _encoding, done) {
        pieces.push(piece.toString());
        done();
      },
    }) as unknown as NodeJS.WriteStream;
    return { text: () => pieces.join(''), stream };
  };
  const out = collect();
  const err = collect();
  const status = await runProgram(args, { ...realEnvironment, out: out.stream, err: err.stream });
  return { status, stdout: out.text(), stderr: err.text() };
}

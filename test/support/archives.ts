import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from './temporary.ts';

/** An archive that the machine's own `tar` makes of what a shell does in a directory. */
export function archiveOf(script: string, ...options: readonly string[]): Buffer {
  const directory = temporaryDirectory();
  const file = join(temporaryDirectory(), 'archive');
  execFileSync('sh', ['-c', script], { cwd: directory });
  execFileSync('tar', ['-cf', file, ...options, '.'], { cwd: directory });
  return readFileSync(file);
}

/** The bytes in pieces of this length. */
export async function* inPieces(bytes: Buffer, length = 1000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

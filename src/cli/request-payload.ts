import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { type OperatorFiles, whyUnreadable } from '../util/operator-files.ts';
import { NotPlainFile } from '../util/plain-file.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Payload, PayloadFile } from '../worker/payload.ts';

/** The work of a request, as the command line says it. */
export interface PayloadOptions {
  readonly file?: readonly string[];
  readonly secretFile?: readonly string[];
  readonly env?: readonly string[];
  readonly value?: readonly string[];
}

/** @throws ThresherError `request-wrong`, `usage` */
export async function payloadOf(
  { file = [], secretFile = [], env = [], value = [] }: PayloadOptions,
  argv: readonly string[],
  files: OperatorFiles,
): Promise<Payload> {
  const read = (written: string, secret: boolean) => payloadFile(written, secret, files);
  return {
    files: [
      ...(await Promise.all(file.map((one) => read(one, false)))),
      ...(await Promise.all(secretFile.map((one) => read(one, true)))),
    ],
    env: pairs('--env', env),
    values: pairs('--value', value),
    argv,
  };
}

async function payloadFile(written: string, secret: boolean, files: OperatorFiles): Promise<PayloadFile> {
  const { path, name } = placeOf(written);
  try {
    const { bytes } = await files.read(path, 'payload');
    const { mode } = await files.run(path, 'a look at', () => stat(path));
    const file = { name, mode: mode & 0o777, content: bytes.toString('base64') };
    return secret ? { ...file, secret } : file;
  } catch (error) {
    const option = secret ? '--secret-file' : '--file';
    const message = `${option} ${path}: ${whyNot(error)}`;
    throw new ThresherError('request-wrong', message, { path }, { cause: error });
  }
}

function whyNot(error: unknown): string {
  if (!(error instanceof NotPlainFile)) return whyUnreadable(error, 'payload');
  if (error.why === 'too-large')
    return 'it has more than 1 MiB, the most that a worker gets: let the worker fetch it';
  return `it ${error.message.slice(error.path.length + 1)}: name a file; several fit into an archive`;
}

/** `PATH:NAME`, or a path alone, whose last part is the name. A path with a colon needs its name. */
function placeOf(written: string): { path: string; name: string } {
  const at = written.lastIndexOf(':');
  if (at < 0) return { path: written, name: basename(written) };
  const [path, name] = [written.slice(0, at), written.slice(at + 1)];
  if (path !== '' && name !== '') return { path, name };
  throw new ThresherError('usage', `"${written}" must be PATH or PATH:NAME`);
}

function pairs(option: string, written: readonly string[]): Record<string, string> {
  const result = new Map<string, string>();
  for (const pair of written) {
    const at = pair.indexOf('=');
    // The text may be a secret that was meant for another option.
    if (at < 1) throw new ThresherError('usage', `${option} takes NAME=VALUE, and one of them has no "="`);
    const name = pair.slice(0, at);
    if (result.has(name)) throw new ThresherError('usage', `${option} names ${name} twice`);
    result.set(name, pair.slice(at + 1));
  }
  return Object.fromEntries(result);
}

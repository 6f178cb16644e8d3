import { constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { ThresherError } from '../../worker/errors.ts';

/** Whether the command would be found; placeholders in it are only known later. @throws ThresherError `file-timeout` */
export async function commandExists(files: OperatorFiles, command: string, path: string): Promise<boolean> {
  if (command.includes('${')) return true;
  const candidates = command.includes('/')
    ? [command]
    : path.split(delimiter).map((part) => join(part, command));
  for (const candidate of candidates) {
    if ((await files.stat(candidate))?.isFile() !== true) continue;
    const refusal = await files.access(candidate, constants.X_OK).catch((error: unknown) => error);
    if (refusal === undefined) return true;
    if (refusal instanceof ThresherError) throw refusal;
  }
  return false;
}

import { access, constants, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** Whether the command would be found; placeholders in it are only known later. */
export async function commandExists(command: string, path: string): Promise<boolean> {
  if (command.includes('${')) return true;
  const candidates = command.includes('/')
    ? [command]
    : path.split(delimiter).map((part) => join(part, command));
  for (const candidate of candidates) if (await isProgram(candidate)) return true;
  return false;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

import { isUtf8 } from 'node:buffer';
import type { FileKind } from './file-kinds.ts';
import { broken, endless, type Located, parseJson, parseYaml } from './located.ts';
import { type OperatorFiles, readOperatorFileSync, whyUnreadable } from './operator-files.ts';

type Parse = (text: string, file: string) => Located;

/** Reads a JSON file as strictly as Python's `json.load`; of a duplicate key the last one counts, with a warning where they differ. */
export function readJsonFile(files: OperatorFiles, file: string, kind: FileKind): Promise<Located> {
  return readLocated(files, file, kind, parseJson);
}

/** Reads a YAML file; a duplicate key is an error. */
export function readYamlFile(files: OperatorFiles, file: string, kind: FileKind): Promise<Located> {
  return readLocated(files, file, kind, parseYaml);
}

/** Reads a file as `parse` does; one that cannot be read is a problem of its own. */
export async function readLocated(
  files: OperatorFiles,
  file: string,
  kind: FileKind,
  parse: Parse,
): Promise<Located> {
  let bytes: Buffer;
  try {
    ({ bytes } = await files.read(file, kind));
  } catch (error) {
    return broken(file, 0, 'file-unreadable', whyUnreadable(error, kind));
  }
  return located(bytes, file, parse);
}

/** The same for settings, which are read before anything runs. */
export function readLocatedSync(file: string, kind: FileKind, parse: Parse): Located {
  let bytes: Buffer;
  try {
    ({ bytes } = readOperatorFileSync(file, kind));
  } catch (error) {
    return broken(file, 0, 'file-unreadable', whyUnreadable(error, kind));
  }
  return located(bytes, file, parse);
}

function located(bytes: Buffer, file: string, parse: Parse): Located {
  if (!isUtf8(bytes)) {
    // Read as characters, such bytes would end up in names and commands.
    const what = 'this line has bytes that are no UTF-8; save the file as UTF-8';
    return broken(file, firstLineNotUtf8(bytes), 'syntax', what);
  }
  try {
    return parse(bytes.toString('utf8'), file);
  } catch (error) {
    // The stack ends where nesting does not.
    if (error instanceof RangeError) return broken(file, 1, 'syntax', endless);
    throw error;
  }
}

function firstLineNotUtf8(bytes: Buffer): number {
  let line = 1;
  // No character of several bytes has the byte of a line's end in it.
  for (let at = 0, end = bytes.indexOf(10); end !== -1; at = end + 1, end = bytes.indexOf(10, at)) {
    if (!isUtf8(bytes.subarray(at, end))) break;
    line++;
  }
  return line;
}

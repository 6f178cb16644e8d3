import type { HTCondorSubmitterConfig } from '../schema.ts';
import type { Command, Statement } from './statements.ts';

/** A file that `condor_submit` opens on this machine for every job of a template. */
export interface NeededFile {
  /** The queue's option that names it, or the template itself. */
  readonly from: 'executableFile' | 'template';
  /** As the template has it; for `executableFile` undefined: the option says it. */
  readonly path: string | undefined;
  readonly line: number;
  /** False where an `if` of the template may leave it out. */
  readonly certain: boolean;
}

/**
 * The program that `condor_submit` looks for. It takes the last `executable`, counts a relative path from the directory
 * that it was started in whatever `initialdir` says, and refuses a submission whose program is missing, for grid
 * universe and a remote schedd as well. It looks for nothing where the program is on the execute node:
 * `transfer_executable = false`, or an absolute path in the image of a container. Source: condor_submit 23.9 itself, by
 * `-dry-run`.
 */
export function neededFiles(statements: readonly Statement[]): readonly NeededFile[] {
  const commands = statements.filter((one): one is Command => one.kind === 'command');
  const last = (key: string) => commands.findLast((one) => one.key.toLowerCase() === key);
  const certain = statements.every(({ kind }) => kind !== 'verbatim');
  const lists = commands.filter(({ key, names }) => isInputList(key) && names.includes(option));
  const inputs = lists.map(({ line }) => ({ from: option, path: undefined, line, certain }) as const);
  const executable = last('executable');
  const transfer = last('transfer_executable');
  if (executable === undefined || isNever(transfer?.text ?? '') || (transfer?.names.length ?? 0) > 0)
    return inputs;
  const { names, text, line } = executable;
  const inImage = isInContainer(statements) && transfer === undefined;
  // An option is an absolute path.
  if (names.length === 1 && names[0] === option && text.trim() === '')
    return inImage ? inputs : [{ from: option, path: undefined, line, certain }, ...inputs];
  const path = text.trim();
  // The path behind other placeholders and macros is known when a worker is submitted.
  if (names.length > 0 || path === '' || /\$[A-Za-z_]*\(/.test(path)) return inputs;
  if (inImage && path.startsWith('/')) return inputs;
  return [{ from: 'template', path, line, certain }, ...inputs];
}

/** An unreadable template may need these: the operator learns of both at once. */
export const perhapsNeeded: readonly NeededFile[] = [
  { from: 'executableFile', path: undefined, line: 0, certain: true },
];

const option = 'executableFile' satisfies keyof HTCondorSubmitterConfig;

function isInputList(key: string): boolean {
  return /^transfer_input_files$/i.test(key);
}

/** A value of `transfer_executable` by which nothing is brought. HTCondor takes "no" and "0" for true here. */
export function isNever(text: string): boolean {
  return /^\s*false\s*$/i.test(text);
}

/** Whether the job runs in an image, where an absolute path is one of the image. */
export function isInContainer(statements: readonly Statement[]): boolean {
  const last = (key: string) =>
    statements.findLast((one): one is Command => one.kind === 'command' && one.key.toLowerCase() === key);
  const universe = last('universe')?.text.trim().toLowerCase() ?? '';
  return (
    ['docker', 'container'].includes(universe) || Boolean(last('container_image') ?? last('docker_image'))
  );
}

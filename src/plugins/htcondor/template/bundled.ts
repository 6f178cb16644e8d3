import { ThresherError } from '../../../worker/errors.ts';
import { bundleName } from '../payload/bundle.ts';
import { isInContainer, isNever } from './executable.ts';
import type { Values } from './placeholders.ts';
import { inert, word } from './quoting.ts';
import type { Command, Statement } from './statements.ts';

/** Values of a worker with a bundle that no template can name. */
export const bundlePath = ' bundle';
export const ownProgram = ' own program';

/** Commands that a bundle takes over, in all the ways in which HTCondor takes them. */
const takenOver = {
  executable: /^executable$/i,
  transferExecutable: /^transfer_?executable$/i,
  arguments: /^(arguments|args)$/i,
  inputs: /^transfer_?input_?files$/i,
  transfer: /^should_?transfer_?files$/i,
} as const;

type Taken = Readonly<Partial<Record<keyof typeof takenOver, Command>>>;

/** The program of a template for one worker, as submit text. */
interface Program {
  /** HTCondor brings it to the job, or it is on the machine or in the image. */
  readonly how: 'transferred' | 'there';
  readonly path: string;
}

/**
 * The same statements for workers with a bundle: `/bin/sh` runs the bundle, which then runs the payload's program, or that of the
 * template. The rest of the template stays: its needs, credentials, attributes, environment and output.
 * @throws ThresherError `htcondor-payload` for a template that leaves no way to bring a bundle
 */
export function withBundle(
  statements: readonly Statement[],
  { spooled }: { readonly spooled: boolean },
): Statement[] {
  refuseBranches(statements);
  const taken = Object.fromEntries(
    Object.entries(takenOver).flatMap(([what, key]) => {
      const command = statements.findLast(
        (one): one is Command => one.kind === 'command' && key.test(one.key),
      );
      return command === undefined ? [] : [[what, command] as const];
    }),
  ) as Taken;
  if (/^\s*(no|false)\s*$/i.test(taken.transfer?.text ?? ''))
    throw refused('should_transfer_files = NO keeps the payload from the job: write YES');
  const keys = Object.values(takenOver);
  const rest = statements.filter((one) => one.kind !== 'command' || !keys.some((key) => key.test(one.key)));
  const universe = lastOf(statements, 'universe')?.text.trim().toLowerCase() ?? 'vanilla';
  const programOf = (values: Values) => programFor(statements, taken, values);
  return [
    ...rest,
    command('executable', () => '/bin/sh'),
    command('transfer_executable', () => 'false'),
    command('arguments', (values) => argumentsWith(taken.arguments, programOf, values)),
    command('transfer_input_files', (values) =>
      inputsWith(taken.inputs?.render(values), [...broughtBy(programOf, values), bundleIn(values)], spooled),
    ),
    // A CE has no such choice.
    ...(universe === 'grid'
      ? [taken.transfer ?? []].flat()
      : [command('should_transfer_files', () => 'YES')]),
  ];
}

function command(key: string, render: Command['render']): Command {
  return { kind: 'command', key, line: 0, names: [], text: '', render };
}

function lastOf(statements: readonly Statement[], key: string): Command | undefined {
  return statements.findLast(
    (one): one is Command => one.kind === 'command' && one.key.toLowerCase() === key,
  );
}

/** Whether a command in a branch counts is known to HTCondor alone. */
function refuseBranches(statements: readonly Statement[]): void {
  let depth = 0;
  for (const one of statements) {
    if (one.kind === 'verbatim' && /^if\b/i.test(one.text)) depth++;
    if (one.kind === 'verbatim' && /^endif\b/i.test(one.text)) depth--;
    if (one.kind !== 'command' || depth === 0) continue;
    if (!Object.values(takenOver).some((key) => key.test(one.key))) continue;
    throw refused(`${one.key} on line ${one.line} stands between "if" and "endif": write it outside of them`);
  }
}

/** @throws ThresherError `htcondor-payload` where the template has none */
function programFor(
  statements: readonly Statement[],
  { executable, ...taken }: Taken,
  values: Values,
): Program {
  const path = executable?.render(values) ?? '';
  if (path === '')
    throw refused(
      'it has no executable, and the payload has no argv that says what runs: give it one of both',
    );
  const transfer = taken.transferExecutable;
  const inImage = isInContainer(statements) && transfer === undefined && path.startsWith('/');
  const there = inImage || (transfer !== undefined && isNever(transfer.render(values)));
  return { how: there ? 'there' : 'transferred', path };
}

/**
 * All workers of a template get arguments of one syntax: a job that has them in the old one takes those that its cluster has in the
 * new one instead.
 * @throws ThresherError `htcondor-payload`
 */
function argumentsWith(
  written: Command | undefined,
  programOf: (values: Values) => Program,
  values: Values,
): string {
  const isNew = written?.newSyntax ?? true;
  if (values[ownProgram] === true) return isNew ? `"${bundleName}"` : bundleName;
  const { how, path } = programOf(values);
  const text = written?.render(values) ?? '""';
  if (isNew) return `"${bundleName} ${how} ${word(path)} ${text.slice(1)}`;
  if (!/[\s"']/.test(path)) return `${bundleName} ${how} ${path} ${text}`.trimEnd();
  throw refused(
    `its executable ${path} has a blank or a quote, and its arguments no quotes: write arguments = "..."`,
  );
}

function broughtBy(programOf: (values: Values) => Program, values: Values): string[] {
  if (values[ownProgram] === true) return [];
  const { how, path } = programOf(values);
  return how === 'transferred' ? [path] : [];
}

function bundleIn(values: Values): string {
  return inert(values[bundlePath] ?? null, { name: 'the path of the payload' }, 'item');
}

/** @throws ThresherError `htcondor-payload` for a path that HTCondor would divide: `condor_submit -spool` does so at blanks, too (23.9). */
function inputsWith(written = '', more: readonly string[], spooled: boolean): string {
  const divided = more.find((path) => path.includes(',') || (spooled && /\s/.test(path)));
  if (divided !== undefined)
    throw refused(
      `HTCondor would divide the path ${JSON.stringify(divided)} in its list of input files: it must have no comma${spooled ? ' and no blank' : ''}`,
    );
  // "" is how submit descriptions say: none.
  return (written === '' || written === '""' ? more : [written, ...more]).join(', ');
}

function refused(why: string): ThresherError {
  return new ThresherError('htcondor-payload', `the template cannot give a payload to its workers: ${why}`);
}

import { ThresherError } from '../../../worker/errors.ts';
import { outputName } from '../payload/bundle.ts';
import type { Values } from './placeholders.ts';
import { inert } from './quoting.ts';
import type { Command, Statement } from './statements.ts';

/** Value of a worker that no template can name: the file of thresher that its output becomes. */
export const outputPath = ' output';

const outputs = /^transfer_?output_?files$/i;
const remaps = /^transfer_?output_?remaps$/i;
const destination = /^output_?destination$/i;
const when = /^when_?to_?transfer_?output$/i;

/** Files of a job's own words, by the end of their names beside its output. */
const words = [
  { key: 'output', written: /^(output|stdout|out)$/i, end: 'out' },
  { key: 'error', written: /^(error|stderr|err)$/i, end: 'err' },
  { key: 'log', written: /^log$/i, end: 'log' },
] as const;

/**
 * The same statements for workers whose payload says whether they leave an output. The words of a job lie beside its output, and go with
 * its worker. HTCondor would bring back all files that a job leaves, those of each job into the same directory, where the template says
 * nothing: a list of files keeps it from that.
 * @throws ThresherError `htcondor-payload` for a template that leaves no way to bring the output back
 */
export function withLeftOutput(statements: readonly Statement[], leaves: boolean): Statement[] {
  const last = (key: RegExp) =>
    statements.findLast((one): one is Command => one.kind === 'command' && key.test(one.key));
  const [listed, renamed] = [last(outputs), last(remaps)];
  const kept = statements.filter(
    (one) => one.kind !== 'command' || !words.some(({ written }) => written.test(one.key)),
  );
  const own = words.map(({ key, end }) => command(key, (values) => `${pathIn(values)}.${end}`));
  if (!leaves) {
    const none = listed === undefined ? [command('transfer_output_files', () => '""')] : [];
    return [...kept, ...own, ...none];
  }
  refuse(statements, last);
  return [
    ...kept.filter((one) => one !== listed && one !== renamed),
    ...own,
    command('transfer_output_files', (values) => {
      const others = listed?.render(values) ?? '';
      return others === '' || others === '""' ? outputName : `${others}, ${outputName}`;
    }),
    command('transfer_output_remaps', (values) => {
      const others = (renamed?.render(values) ?? '').trim().replace(/^"(.*)"$/, '$1');
      return `"${others === '' ? '' : `${others}; `}${outputName}=${pathIn(values)}"`;
    }),
  ];
}

function refuse(statements: readonly Statement[], last: (key: RegExp) => Command | undefined): void {
  if (last(destination) !== undefined)
    throw refused('output_destination sends all output elsewhere: remove it');
  if (/^\s*never\s*$/i.test(last(when)?.text ?? ''))
    throw refused('when_to_transfer_output = NEVER brings nothing back: write ON_EXIT');
  let depth = 0;
  for (const one of statements) {
    if (one.kind === 'verbatim' && /^if\b/i.test(one.text)) depth++;
    if (one.kind === 'verbatim' && /^endif\b/i.test(one.text)) depth--;
    if (one.kind === 'command' && depth > 0 && (outputs.test(one.key) || remaps.test(one.key)))
      throw refused(
        `${one.key} on line ${one.line} stands between "if" and "endif": write it outside of them`,
      );
  }
}

function pathIn(values: Values): string {
  const path = inert(values[outputPath] ?? null, { name: 'the path of the output' }, 'plain');
  const [letter] = /[;=,"\\]/.exec(path) ?? [];
  if (letter === undefined) return path;
  throw refused(
    `the path ${JSON.stringify(path)} has a ${letter}, at which HTCondor divides its list of output files`,
  );
}

function command(key: string, render: Command['render']): Command {
  return { kind: 'command', key, line: 0, names: [], text: '', render };
}

function refused(why: string): ThresherError {
  return new ThresherError(
    'htcondor-payload',
    `the template cannot bring back the output of its workers: ${why}`,
  );
}

import { type SubmitCommands, submitRefusal, submitText } from '../../../clients/htcondor/submit-commands.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { Command, Statement } from './statements.ts';

/**
 * The statements of a template with the commands that a payload brings. They come last, so that they win; the requirements of both
 * must be met, since a template's keep jobs away from machines where they cannot run.
 * @throws ThresherError `payload-wrong` for a command that thresher hands to no job
 */
export function withCommands(
  statements: readonly Statement[],
  commands: SubmitCommands = {},
): readonly Statement[] {
  const added = Object.entries(commands).map(([key, value]): Command => {
    const refusal = submitRefusal(key, value);
    if (refusal !== undefined)
      throw new ThresherError(
        'payload-wrong',
        `payload/submit: ${key} cannot be given to HTCondor: ${refusal}`,
      );
    const text = submitText(value);
    const before = key.toLowerCase() === 'requirements' ? lastRequirements(statements) : undefined;
    const render: Command['render'] = (values) =>
      before === undefined ? text : `(${before.render(values)}) && (${text})`;
    return { kind: 'command', key, line: 0, names: before?.names ?? [], text: '', render };
  });
  return added.length === 0 ? statements : [...statements, ...added];
}

function lastRequirements(statements: readonly Statement[]): Command | undefined {
  return statements.findLast(
    (one): one is Command => one.kind === 'command' && one.key.toLowerCase() === 'requirements',
  );
}

import { type SubmitCommands, submitRefusal, submitText } from '../../../clients/htcondor/submit-commands.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { Values } from './placeholders.ts';
import type { Command, Statement } from './statements.ts';

/**
 * Numbers that may differ between the workers of one `condor_submit`. HTCondor refuses none of them, so a worker never fails for the
 * value of another one.
 */
const ownNumbers = {
  key: /^(request_(cpus|memory|disk|gpus)|job_max_vacate_time)$/i,
  value: /^[1-9]\d{0,14}$/,
} as const;

/** Whether a worker may have this command of its payload beside workers with another value of it. */
export function isOwnNumber(key: string, value: string): boolean {
  return ownNumbers.key.test(key) && ownNumbers.value.test(value);
}

/** A value that no template can name. */
function nameOfOwn(key: string): string {
  return ` submit ${key}`;
}

/** The values of these commands for one worker. */
export function ownNumbersOf(commands: SubmitCommands = {}): Values {
  return Object.fromEntries(
    Object.entries(commands)
      .filter(([key, value]) => isOwnNumber(key, value))
      .map(([key, value]) => [nameOfOwn(key), value]),
  );
}

/**
 * The statements of a template with the commands that a payload brings. They come last, so that they win; the requirements of both
 * must be met, since a template's keep jobs away from machines where they cannot run.
 * @param commands of one worker; another one may have other numbers (`ownNumbersOf`)
 * @param allowed `submitCommands` of the queue
 * @throws ThresherError `payload-wrong` for a command that thresher hands to no job
 */
export function withCommands(
  statements: readonly Statement[],
  commands: SubmitCommands = {},
  allowed: readonly string[] = [],
): readonly Statement[] {
  const added = Object.entries(commands).map(([key, value]): Command => {
    const refusal = submitRefusal(key, value, allowed);
    if (refusal !== undefined)
      throw new ThresherError(
        'payload-wrong',
        `payload/submit: ${key} cannot be given to HTCondor: ${refusal}`,
      );
    const text = submitText(value);
    const before = key.toLowerCase() === 'requirements' ? lastRequirements(statements) : undefined;
    const render: Command['render'] = (values) => {
      if (before !== undefined) return `(${before.render(values)}) && (${text})`;
      const own = values[nameOfOwn(key)];
      return typeof own === 'string' ? own : text;
    };
    return { kind: 'command', key, line: 0, names: before?.names ?? [], text: '', render };
  });
  return added.length === 0 ? statements : [...statements, ...added];
}

function lastRequirements(statements: readonly Statement[]): Command | undefined {
  return statements.findLast(
    (one): one is Command => one.kind === 'command' && one.key.toLowerCase() === 'requirements',
  );
}

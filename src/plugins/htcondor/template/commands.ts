import { endlessReason } from '../../../clients/htcondor/expression-steps.ts';
import {
  boundedValue,
  type SubmitCommands,
  submitRefusal,
  submitText,
  tooManySteps,
} from '../../../clients/htcondor/submit-commands.ts';
import { comparedName } from '../../../clients/htcondor/submit-names.ts';
import { ThresherError } from '../../../worker/errors.ts';
import type { Values } from './placeholders.ts';
import type { Command, Statement } from './statements.ts';

/**
 * Numbers that may differ between the workers of one `condor_submit`. HTCondor itself refuses none of them. Where a rule of a schedd's
 * administrators does, the workers are submitted in halves until it is alone (`Submission`), so that none fails for the value of another one.
 */
const ownNumbers = {
  key: /^(request_(cpus|memory|disk|gpus)|job_max_vacate_time)$/i,
  value: /^[1-9]\d{0,14}$/,
} as const;

/** Whether a worker may have this command of its payload beside workers with another value of it: only one of them is looked at again. */
export function isOwnNumber(key: string, value: string): boolean {
  return ownNumbers.key.test(key) && ownNumbers.value.test(value) && submitRefusal(key, value) === undefined;
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
 * The statements of a template with the commands that a payload brings. They come last, so that they win. What keeps jobs away from
 * machines, or bounds them, is no payload's to take away: the requirements and the concurrency limits of both count, of two durations the
 * shorter one, the template's group, what either holds or removes is held or removed, and no payload releases what a bound of the queue holds,
 * or what it holds itself: its job would run again and again, which `max_retries` may not have it do, either.
 * @param commands of one worker; another one may have other numbers (`ownNumbersOf`)
 * @param allowed `submitCommands` of the queue
 * @throws ThresherError `payload-wrong` for a command that thresher hands to no job, or that cannot stand beside the template's
 */
export function withCommands(
  statements: readonly Statement[],
  commands: SubmitCommands = {},
  allowed: readonly string[] = [],
): readonly Statement[] {
  const tooMuch = tooManySteps(commands);
  const added: readonly Command[] = Object.entries(commands).map(([key, value]) => {
    const refusal = submitRefusal(key, value, allowed) ?? (tooMuch.includes(key) ? endlessReason : undefined);
    if (refusal !== undefined)
      throw new ThresherError(
        'payload-wrong',
        `payload/submit: ${key} cannot be given to HTCondor: ${refusal}`,
      );
    const text = submitText(boundedValue(key, value));
    const together = joins[comparedName(key)];
    const before = together === undefined ? undefined : commandBefore(statements, key);
    const render: Command['render'] = (values) => {
      if (together !== undefined)
        return together(text, before?.render(values), values, [...statements, ...added]);
      const own = values[nameOfOwn(key)];
      return typeof own === 'string' ? own : text;
    };
    return { kind: 'command', key, line: 0, names: before?.names ?? [], text: '', render };
  });
  return added.length === 0 ? statements : [...statements, ...added];
}

type Join = (
  text: string,
  before: string | undefined,
  values: Values,
  statements: readonly Statement[],
) => string;

/** How a payload's command and the template's of the same name count together. */
const joins: Readonly<Record<string, Join>> = {
  requirements: (text, before) => (before === undefined ? text : `(${before}) && (${text})`),
  concurrency_limits: (text, before = '') => (before.trim() === '' ? text : `${before}, ${text}`),
  concurrency_limits_expr: (text) => text,
  accounting_group: (text) => text,
  nice_user: (text) => text,
  '+jobflavour': (text) => text,
  '+maxruntime': shorterOfBoth,
  '+maxwalltime': shorterOfBoth,
  '+maxwalltimemins': shorterOfBoth,
  '+requestruntime': shorterOfBoth,
  allowed_job_duration: shorterOf,
  allowed_execute_duration: shorterOf,
  periodic_hold: eitherOf,
  periodic_remove: eitherOf,
  // A job that is vacated runs again: once, as it may be preempted, and not without end.
  periodic_vacate: (text, before) => eitherOf(`(${text}) && NumJobStarts =?= 1`, before),
  periodic_release: (text, before, _, statements) =>
    eitherOf(`(${text}) && ${notHeldByABound(statements)}`, before),
};

/** Whose jobs they are, and in which class: two values do not count together. */
const ofTemplateAlone: ReadonlySet<string> = new Set(['accountinggroup', 'niceuser', 'my.jobflavour']);

/** @throws ThresherError `payload-wrong` where an expression of the payload, which may be undefined, would stand beside a time of the template */
function shorterOfBoth(text: string, before: string | undefined): string {
  if (before === undefined) return text;
  if (/^[1-9]\d{0,8}$/.test(text)) return shorterOf(text, before, {});
  throw new ThresherError(
    'payload-wrong',
    `payload/submit: ${text} cannot stand beside ${before} of the template of the queue: write a whole number`,
  );
}

function shorterOf(text: string, before: string | undefined, { maxWalltime }: Values): string {
  const ofQueue = typeof maxWalltime === 'number' ? String(maxWalltime) : undefined;
  const bounds = [text, before, ofQueue].flatMap((bound = '') => {
    const said = bound.trim();
    return said === '' || Number(said) <= 0 ? [] : [said];
  });
  const isPlain = bounds.every((bound) => Number(bound) > 0);
  // A template may have an expression, which only HTCondor knows the value of.
  return isPlain ? String(Math.min(...bounds.map(Number))) : `min({${bounds.join(', ')}})`;
}

function eitherOf(text: string, before: string | undefined): string {
  return before === undefined ? text : `(${before}) || (${text})`;
}

/** Source: HTCondor 23.9, `condor_holdcodes.h`: 46 and 47 are the allowed durations, 3 is `periodic_hold`, and `on_exit_hold`. */
function notHeldByABound(statements: readonly Statement[]): string {
  const holds = statements.some(
    (one) => one.kind === 'command' && /^(my\.)?(periodichold|onexithold)$/.test(plainName(one.key)),
  );
  return `!member(HoldReasonCode, {${holds ? '3, ' : ''}33, 46, 47})`;
}

/**
 * HTCondor takes `periodic_remove` and `PeriodicRemove` for the same command, and `+PeriodicRemove` for what it makes of it.
 * Source: 23.9, `submit_utils.cpp`, where each is looked up by two names
 */
function plainName(key: string): string {
  return key.toLowerCase().replaceAll('_', '').replace(/^\+/, 'my.');
}

/**
 * The template's command that counts beside a payload's.
 * @throws ThresherError `payload-wrong` where it cannot be told which one that is, or both cannot be said
 */
function commandBefore(statements: readonly Statement[], key: string): Command | undefined {
  const name = plainName(key);
  const refused = (why: string) =>
    new ThresherError('payload-wrong', `payload/submit: ${key} cannot be given to HTCondor: ${why}`);
  let depth = 0;
  let last: Command | undefined;
  for (const one of statements) {
    if (one.kind === 'verbatim' && /^if\b/i.test(one.text)) depth++;
    if (one.kind === 'verbatim' && /^endif\b/i.test(one.text)) depth--;
    if (one.kind !== 'command') continue;
    const its = plainName(one.key);
    // HTCondor takes either a list or an expression.
    const isOther =
      (name.startsWith('concurrencylimits') &&
        its.startsWith('concurrencylimits') &&
        (its !== name || its.endsWith('expr'))) ||
      (its === name && ofTemplateAlone.has(name));
    if (isOther || its === `my.${name}`)
      throw refused(`the template of the queue has ${one.key}, which counts for all its jobs`);
    if (its !== name) continue;
    if (depth > 0)
      throw refused(`the template of the queue has its own on line ${one.line}, between "if" and "endif"`);
    last = one;
  }
  return last;
}

import { constants } from 'node:os';
import { attributeOf, endlessIn, endlessReason } from './expression-steps.ts';
import { expressionRefusal, type Reader } from './expression.ts';
import { mostOfJob } from '../../worker/worker.ts';
import { commandRefusal, comparedName, isListed, shown } from './submit-names.ts';

/** Commands by their names as written, `request_cpus` or `+MaxRuntime`, with their values. */
export type SubmitCommands = Readonly<Record<string, string>>;

export interface LineProblem {
  /** From 1. */
  readonly line: number;
  /** A whole sentence. */
  readonly message: string;
}

export interface ReadCommands {
  readonly commands: SubmitCommands;
  readonly problems: readonly LineProblem[];
}

/** Mistakes after which a text is read no further: it may have a short one in each of 30,000 lines. */
const mostProblems = 20;

/** Macros of a single job that thresher leaves to HTCondor. */
const ownNumbers = /\$\((?:Cluster|ClusterId|Process|ProcId)\)/gi;

/**
 * Reads lines of a submit description, each of which gives one command to a job. Blank lines and comments count as nothing.
 * @param added names that an administrator allows beside those of the lists
 */
export function readSubmitCommands(text: string, added: readonly string[] = []): ReadCommands {
  const commands: Record<string, string> = {};
  const problems: LineProblem[] = [];
  /** Where each command is, by its name as HTCondor compares it. */
  const lines = new Map<string, number>();
  for (const [index, written] of text.split(/\r?\n/).entries()) {
    if (problems.length >= mostProblems) break;
    const line = written.trim();
    if (line === '' || line.startsWith('#')) continue;
    const problem = (why: string) =>
      problems.push({ line: index + 1, message: `line ${index + 1}, ${shown(line)}: ${why}` });
    const match = /^([^\s=:]+)\s*([=:@]?)(=?)\s*(.*)/s.exec(line);
    const [, key = '', sign = '', second = '', value = ''] = match ?? [];
    const refusal = commandRefusal(key, added);
    if (/^\w+$/.test(key) && sign !== '=' && refusal !== undefined) problem(refusal);
    else if (sign === '@') problem('text of several lines is not taken; write NAME = VALUE on one line');
    else if (match === null || sign !== '=' || second === '=')
      problem('this is no command of a submit description; write NAME = VALUE');
    else {
      const name = comparedName(key);
      const first = lines.get(name);
      const why =
        refusal ??
        valueRefusal(key, value) ??
        endRefusal(key, value) ??
        (first === undefined ? undefined : `line ${first} has this command already; keep one of them`);
      if (why !== undefined) problem(why);
      else {
        commands[key] = value;
        lines.set(name, index + 1);
      }
    }
  }
  for (const key of tooManySteps(commands)) {
    const line = lines.get(comparedName(key)) ?? 0;
    problems.push({ line, message: `line ${line}, ${shown(key)}: ${endlessReason}` });
    // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- it is an own object, by the names of commands
    delete commands[key];
  }
  return { commands, problems };
}

/** The commands of one job that HTCondor is not to evaluate together. */
export function tooManySteps(commands: SubmitCommands): readonly string[] {
  const plain = Object.fromEntries(
    Object.entries(commands).map(([key, value]) => [key, withoutNumbers(value)]),
  );
  return endlessIn(plain, (key) => Object.hasOwn(forms, key.toLowerCase()));
}

/**
 * Why thresher hands this command to no job; undefined: it does.
 * @param added names that an administrator allows beside those of the lists
 */
export function submitRefusal(key: string, value: string, added: readonly string[] = []): string | undefined {
  return commandRefusal(key, added) ?? valueRefusal(key, value);
}

/** The value as HTCondor reads it: nothing in it but the numbers of the job is a macro. */
export function submitText(value: string): string {
  const numbers = value.match(ownNumbers) ?? [];
  return value
    .split(ownNumbers)
    .map((text, index) => text.replaceAll('$', () => '$(DOLLAR)') + (numbers[index] ?? ''))
    .join('');
}

/**
 * The value as a job gets it. Memory and disk may be expressions, to ask for more where there was too little; what they come to is known to HTCondor
 * alone, and is kept within the range of a number. What is undefined, or no number (NaN), counts as 0.
 */
export function boundedValue(key: string, value: string): string {
  const range = rangeOf(key);
  if (range?.units === undefined || sizeOf(value) !== undefined) return value;
  return `min({${range.most}, max({${range.least}, (${value})})})`;
}

/** The value with a number in the place of each macro that stays, and of a size with its unit: `2 GB`. */
function withoutNumbers(value: string): string {
  return value.replaceAll(ownNumbers, '0').replace(/^(\d+(?:\.\d+)?)\s*[KMGTP]B?$/i, '$1');
}

function valueRefusal(key: string, value: string): string | undefined {
  if (value === '') return 'it has no value';
  if (/^allowed_(job|execute)_duration$/i.test(key) && !/^[1-9]\d{0,8}$/.test(value))
    return `its value is ${shown(value)}; it must be a whole number of seconds`;
  if (/[\u0000-\u0008\u000a-\u001f\u007f\u0085\u2028\u2029]/.test(value) || !value.isWellFormed())
    return 'its value has a control character; it must be one line of text';
  // HTCondor trims a line before it looks for it.
  if (/\\\s*$/.test(value))
    return 'its value ends with a backslash, by which the next line would be a part of it';
  const macro = (/\$\$/.exec(value) ?? /\$\w*\(/.exec(value.replaceAll(ownNumbers, '')))?.[0];
  if (macro === undefined) return formRefusal(key.toLowerCase(), value);
  return `"${macro}" begins a macro, which could bring in what is not in the text; only $(ClusterId) and $(ProcId) are taken`;
}

/** Characters of a value that is a text. */
const longestText = 1000;

const rightLimits =
  'names with commas between them, each of one or two parts with "." between, and with ":" and a number or without';

function areLimits(value: string): boolean {
  const names = value.split(/[\s,]+/).filter((one) => one !== '');
  const isName = (one: string) => /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?(:(\d+(\.\d*)?|\.\d+))?$/.test(one);
  return value.length <= longestText && names.length > 0 && names.every(isName);
}

/** Commands whose values are no expressions, with what they may be: HTCondor names the command in none of its words about a wrong one. */
const forms: Readonly<Record<string, { readonly fits: (value: string) => boolean; readonly right: string }>> =
  {
    ...Object.fromEntries(
      ['project_name', 'batch_name', 'description'].map((key) => [
        key,
        {
          fits: (value: string) => value.length <= longestText,
          right: `a text of at most ${longestText} characters`,
        },
      ]),
    ),
    // The negotiator takes the jobs of each group in turn: with a group of its own, each job would come before those of others.
    accounting_group: {
      fits: (value) => /^\w[\w.-]{0,199}$/.test(value),
      right: 'the name of a group: letters, digits, "_", "." and "-", and no macro',
    },
    ...Object.fromEntries(
      ['prio', 'priority'].map((key) => [
        key,
        { fits: (value: string) => /^[+-]?\d{1,9}$/.test(value), right: 'a whole number' },
      ]),
    ),
    kill_sig: {
      fits: (value) =>
        Object.hasOwn(constants.signals, value.toUpperCase()) || /^([1-9]|[1-5]\d|6[0-4])$/.test(value),
      right: 'the name of a signal, as SIGTERM',
    },
    concurrency_limits: { fits: areLimits, right: rightLimits },
    // Of a limit that is no number, "lic:nan", nobody else gets any while the job runs.
    concurrency_limits_expr: {
      fits: (value) => /^"[^"]*"$/.test(value) && areLimits(value.slice(1, -1)),
      right: `a text in "..." of ${rightLimits}`,
    },
    nice_user: { fits: (value) => /^(true|false|yes|no|t|f|1|0)$/i.test(value), right: 'true or false' },
  };

/** What a job asks for, or seconds. */
interface Range {
  readonly least: number;
  readonly most: number;
  readonly isTime?: boolean;
  /** What a number without a unit counts, for what may have one, or be an expression; in bytes. */
  readonly units?: number;
}

const memory: Range = { least: 0, most: mostOfJob.memory, units: 2 ** 20 };
const disk: Range = { least: 0, most: mostOfJob.disk, units: 2 ** 10 };
const day = 86_400;
/**
 * What comes to 0 in 32 bits, as 1e300, ends each claim of the job at once, and the job starts again and again. The schedd tells all machines three
 * times in the shortest lease of its jobs that they keep their claims: 900 s is what it does by its default.
 * Source: ALIVE_INTERVAL of `param_info.in`, and `RecomputeAliveInterval` of the schedd, HTCondor 25.14
 */
const lease: Range = { least: 900, most: day, isTime: true };
/** Machines count the lesser of it and of their own. */
const retirement: Range = { least: 0, most: day, isTime: true };
/** By their attributes, which an administrator can allow, too. */
const ranges: Readonly<Record<string, Range>> = {
  requestcpus: { least: 1, most: mostOfJob.cpus },
  requestgpus: { least: 0, most: mostOfJob.gpus },
  requestmemory: memory,
  retryrequestmemory: memory,
  retryrequestmemoryincrease: memory,
  retryrequestmemorymax: memory,
  requestdisk: disk,
  retryrequestdisk: disk,
  jobleaseduration: lease,
  maxjobretirementtime: retirement,
};
/** Of what a pool has a name of its own for, `request_fpgas`. */
const ofOthers: Range = { least: 0, most: 1_000_000 };

function rangeOf(key: string): Range | undefined {
  const name = attributeOf(key);
  if (Object.hasOwn(ranges, name)) return ranges[name];
  return /^request_/i.test(key) ? ofOthers : undefined;
}

/** A number with its sign and the letter of its unit; undefined: it is an expression. */
function sizeOf(value: string): readonly [number: number, unit: string] | undefined {
  const [, number, unit = ''] = /^(-?\d+(?:\.\d+)?)\s*(?:([KMGTP])B?)?$/i.exec(value) ?? [];
  return number === undefined ? undefined : [Number(number), unit.toUpperCase()];
}

/** Why no job may ask for so much, or for less than nothing, whoever wrote it; undefined: it may, or it is no number. */
export function amountRefusal(key: string, value: string): string | undefined {
  // How long its jobs keep their machines is an administrator's to say.
  if (!/request/i.test(key)) return undefined;
  const range = rangeOf(key);
  const written = value.trim();
  const [number, unit] = sizeOf(written) ?? [Number(written || NaN), ''];
  if (range === undefined || Number.isNaN(number)) return undefined;
  const amount = amountOf(range, number, unit);
  return amount >= 0 && amount <= range.most
    ? undefined
    : `its value is ${shown(written)}; it must be at most ${range.most}${unitOf(range)}, and not negative`;
}

function amountOf({ units = 1 }: Range, number: number, unit: string): number {
  return unit === '' ? number : (number * 1024 ** ' KMGTP'.indexOf(unit)) / units;
}

function unitOf({ units }: Range): string {
  return units === undefined ? '' : units === 1024 ? ' KiB' : ' MiB';
}

/** Why the job of a third party may not ask for so much; undefined: it may, or it is an expression that `boundedValue` keeps within its range. */
export function rangeRefusal(key: string, value: string): string | undefined {
  const range = rangeOf(key);
  if (range === undefined) return undefined;
  const { least, most, units, isTime = false } = range;
  const size = sizeOf(value);
  if (units === undefined) {
    const isWithin = /^\d{1,9}$/.test(value) && Number(value) >= least && Number(value) <= most;
    return isWithin
      ? undefined
      : `its value is ${shown(value)}; it must be a whole number ${isTime ? 'of seconds ' : ''}from ${least} to ${most}`;
  }
  if (size === undefined) return undefined;
  const [number, unit] = size;
  const amount = amountOf(range, number, unit);
  return !value.startsWith('-') && amount >= least && amount <= most
    ? undefined
    : `its value is ${shown(value)}; it must be from ${least} to ${most}${unitOf(range)}, also with a unit as "2 GB"`;
}

/** Machines compare what a job asks for, and its attributes with their START: what of these is read by whom, nobody knows but the pool. */
function readerOf(key: string): Reader {
  if (key === 'requirements' || key === 'rank') return 'match';
  if (key === 'require_gpus') return 'gpu';
  return key.startsWith('periodic_') ? 'schedd' : 'machine';
}

/**
 * Seconds that a user may have a job wait between its signal and its end: HTCondor's own default of a machine.
 * Source: HTCondor 25.14, `param_info.in`, MachineMaxVacateTime
 */
const longestEnd = 600;
/** Signals that end no program which does not handle them. Source: signal(7) */
const notEnding: ReadonlySet<number> = new Set(
  (['CHLD', 'CONT', 'STOP', 'TSTP', 'TTIN', 'TTOU', 'URG', 'WINCH'] as const).map(
    (name) => constants.signals[`SIG${name}`],
  ),
);

/** Why a user may not have a job end so: it would stay on its machine, and in the queue, for as long as its machine lets it. */
function endRefusal(key: string, value: string): string | undefined {
  if (/^(job_max_vacate_time|kill_sig_timeout)$/i.test(key))
    return /^\d{1,3}$/.test(value) && Number(value) <= longestEnd
      ? undefined
      : `its value is ${shown(value)}; it must be a whole number of seconds, at most ${longestEnd}`;
  if (!/^kill_sig$/i.test(key)) return undefined;
  const number = /^\d+$/.test(value)
    ? Number(value)
    : constants.signals[value.toUpperCase() as NodeJS.Signals];
  return notEnding.has(number)
    ? `its value is ${shown(value)}, a signal that ends no job; it must be one that does, as SIGTERM`
    : undefined;
}

function formRefusal(key: string, value: string): string | undefined {
  const form = forms[key];
  if (form !== undefined)
    return form.fits(value) ? undefined : `its value is ${shown(value)}; it must be ${form.right}`;
  const beyond = rangeRefusal(key, value);
  if (beyond !== undefined) return beyond;
  // Of other commands an administrator knows what they are; machines read what a job requests.
  const isExpression = isListed(key) || /^(\+|my\.)/.test(key) || rangeOf(key) !== undefined;
  return isExpression ? expressionRefusal(withoutNumbers(value), readerOf(key)) : undefined;
}

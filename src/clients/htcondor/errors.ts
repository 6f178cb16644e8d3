import { beginningFromOutside } from '../../util/beginning.ts';
import { fromOutside, withoutOwn } from '../../util/own-secrets.ts';
import { withoutKeys } from '../../util/secrets.ts';
import type { htcondorErrors } from './codes.ts';
import { ThresherError } from '../../worker/errors.ts';

export type CondorCode = keyof typeof htcondorErrors;

export interface CondorFailure {
  readonly code: CondorCode;
  readonly message: string;
  /** Whether the schedd may have carried it out: a lost answer must not be taken for a request that never came. */
  readonly maybeDone: boolean;
  /** Line of the submit text, from 1. */
  readonly line?: number;
}

/** Why a command of HTCondor had no success. */
export class HTCondorError extends ThresherError {
  declare readonly code: CondorCode;
  readonly maybeDone: boolean;
  readonly line: number | undefined;

  constructor(failure: CondorFailure, facts: Record<string, unknown> = {}, options?: ErrorOptions) {
    const { code, message, maybeDone, line } = failure;
    super(code, fromOutside(message), { ...facts, ...(line !== undefined && { line }) }, options);
    this.name = 'HTCondorError';
    this.maybeDone = maybeDone;
    this.line = line;
  }
}

/** Whether something thrown comes from HTCondor, with one of these codes. */
export function isHTCondorError(error: unknown, ...codes: CondorCode[]): error is HTCondorError {
  return error instanceof HTCondorError && (codes.length === 0 || codes.includes(error.code));
}

/** The command, for messages. */
export interface Called {
  /** "condor_submit" */
  readonly command: string;
  /** "schedd ap.example.org of pool cm.example.org" */
  readonly place: string;
  /** Whether it changes anything. */
  readonly changes: boolean;
  /** The submit text that condor_submit read. */
  readonly submitted?: string;
}

interface Rule {
  readonly command?: RegExp;
  readonly says: RegExp;
  readonly code: CondorCode;
  /** Whether it may have taken effect. */
  readonly maybeDone: boolean;
}

/**
 * Meanings of the words of HTCondor's tools. The first match counts: the cause of a refusal comes before its symptom,
 * because "cannot find the schedd" follows from a collector that accepts no client. Seen with 23.9; the words of limits
 * are those of `condor_schedd.V6/qmgmt.cpp`.
 */
const rules: readonly Rule[] = [
  // Before all others: condor_submit shows the expression, which may be anybody's.
  {
    command: /submit/,
    says: /^ERROR: Parse error in expression/m,
    code: 'condor-submit-wrong',
    maybeDone: false,
  },
  // Reasons of an administrator (`SUBMIT_REQUIREMENT_NAMES`), or of a limit that is told after them.
  {
    command: /submit/,
    says: /Failed to commit[^\n]*\n(?!.*(CEDAR:|SECMAN:|AUTHENTICATE:|MAX_JOBS|Failed to ))ERROR: /,
    code: 'condor-refused',
    maybeDone: false,
  },
  {
    command: /tail/,
    says: /requested but not authorized to be sent/,
    code: 'condor-not-listed',
    maybeDone: false,
  },
  {
    says: /would exceed (MAX_JOBS_\w+|-maxjobs)|MAX_JOBS_\w+ exceeded|SUBMIT_MAX_PROCS/,
    code: 'condor-limit',
    maybeDone: false,
  },
  {
    says: /No space left on device|Disk quota exceeded|disk is full/i,
    code: 'condor-disk-full',
    maybeDone: false,
  },
  // The number is that of a file: "Permission denied" beside it is no word of the schedd about us.
  {
    says: /failed to (write to|receive|send|create)[^\n]*\(errno \d+\)/i,
    code: 'condor-failed',
    maybeDone: true,
  },
  {
    says: /AUTHENTICATE:|required authentication|Failed to authenticate|security policy is invalid|PERMISSION[ _]DENIED|not authorized|authorization|Cannot allocate a cluster id/i,
    code: 'condor-auth',
    maybeDone: false,
  },
  {
    says: /Couldn't contact the condor_collector|Connection refused|attempt to connect .* failed|No route to host|unable to resolve/i,
    code: 'condor-unreachable',
    maybeDone: false,
  },
  {
    says: /Collector has no record|No such schedd|Can't find address (of|for) (local )?schedd|Unable to locate \w+ schedd|couldn't locate/i,
    code: 'condor-schedd-unknown',
    maybeDone: false,
  },
  {
    says: /Failed to connect|SECMAN:2007|during security negotiation/i,
    code: 'condor-unreachable',
    maybeDone: false,
  },
  {
    says: /Failed to commit|CEDAR:\d+|timed out|Read failure|Socket closed|condor_(read|write)\(\)/i,
    code: 'condor-unreachable',
    maybeDone: true,
  },
  {
    says: /Parse error in constraint|Can't insert constraint|constraint expression|invalid constraint|could not parse/i,
    code: 'condor-constraint-wrong',
    maybeDone: false,
  },
  {
    command: /submit/,
    says: /submit file|parse command file|Parse error in expression/i,
    code: 'condor-submit-wrong',
    maybeDone: false,
  },
  // condor_submit says this while it reads: the schedd has got nothing by then, or condor_submit takes all of it back.
  { command: /submit/, says: /^ERROR: (?!Failed to)/m, code: 'condor-submit-wrong', maybeDone: false },
  {
    says: /No such job|not running|no such job|not found in the queue|Failed to set attribute .* by constraint/i,
    code: 'condor-no-job',
    maybeDone: false,
  },
];

/** The jobs were in the queue when it came to this, whatever kept their files from following. */
const afterwards = /Failed to (spool|commit)/i;

/** The schedd has nothing of it, whatever else is said. */
const refusals: ReadonlySet<Rule | undefined> = new Set(rules.slice(0, 2));

/** Characters of a tool's words that are shown. */
const shownLength = 400;

/** Characters of one of its lines that are read: some rules take the square of a line's length. */
const longestLine = 2000;

/** The failure that the standard error of a tool reports. */
export function failureOf(called: Called, stderr: string, status: string): HTCondorError {
  // A key has lines, some of which may be left out.
  const words = wordsOf(withoutKeys(withoutOwn(stderr)));
  const text = wordsOf(withoutValues(stderr, called.submitted ?? '')).join('\n');
  const rule = rules.find(({ command, says }) => (command?.test(called.command) ?? true) && says.test(text));
  const line = called.submitted === undefined ? undefined : lineOf(text, called.submitted);
  const said = words.length === 0 ? 'without a word' : shown(words);
  const at = line === undefined ? '' : `, line ${line} of the submit text`;
  return new HTCondorError({
    code: rule?.code ?? 'condor-failed',
    message: `${called.command} for ${called.place}${at}: ${said} (${status})`,
    maybeDone:
      called.changes && ((rule?.maybeDone ?? true) || (!refusals.has(rule) && afterwards.test(text))),
    ...(line !== undefined && { line }),
  });
}

/** Lines in which HTCondor tells of itself. They show nothing of a submit text. */
const ownLine =
  /^(\d\d\/\d[\d/: .]* )?(\([\w:|]+\) )*(ERROR: )?(Failed to|CEDAR:|SECMAN:|AUTHENTICATE:|DC\w+::|Number of|SCHEDD |TOOL )/;

/** What was said, without values of the submit text that read as words of HTCondor: a user wrote some of them. */
function withoutValues(said: string, submitted: string): string {
  const lines = said.split('\n');
  const others = new Replaced(lines.filter((line) => !ownLine.test(line)).join('\n'));
  for (const line of submitted.split('\n')) {
    const value = line.slice(line.indexOf('=') + 1);
    // Of a list, of an expression or of a text with macros a part may be shown, and limits are shown in small letters.
    for (const part of new Set([value, ...value.split(/[,"]|\$\(\w+\)/)].map((text) => text.trim()))) {
      // No more of a line is read.
      const start = part.slice(0, longestLine);
      if (rules.some(({ says }) => says.test(start)) || afterwards.test(start)) others.drop(part);
    }
  }
  const left = others.text.split('\n')[Symbol.iterator]();
  return lines.map((line) => (ownLine.test(line) ? line : (left.next().value ?? ''))).join('\n');
}

/** A text from which others are dropped, in large letters or small ones. */
class Replaced {
  text: string;
  #small: string;

  constructor(text: string) {
    // The one letter that has another length when it is small.
    this.text = text.replaceAll('\u0130', 'I');
    this.#small = this.text.toLowerCase();
  }

  drop(part: string): void {
    const sought = part.replaceAll('\u0130', 'I').toLowerCase();
    if (sought === '' || !this.#small.includes(sought)) return;
    const pieces = this.#small.split(sought);
    let at = 0;
    this.text = pieces
      .map((piece) => {
        const own = this.text.slice(at, at + piece.length);
        at += piece.length + sought.length;
        return own;
      })
      .join('');
    this.#small = pieces.join('');
  }
}

/** A secret may stand in the line after its name. */
function shown(words: readonly string[]): string {
  return beginningFromOutside(words.join('\n'), shownLength).replaceAll('\n', '; ');
}

/** The category of a line, where `_CONDOR_TOOL_DEBUG` asks for it. D_FULLDEBUG is D_ALWAYS of level 2. */
const category = /^\((D_\w+(?::\d)?)(?:\|\w+)*\) /;
const talk = '\0';
const telling = new Set(['D_ALWAYS', 'D_ERROR', 'D_STATUS']);

/** Lines that do not tell the cause: advice that is the same for all errors, and warnings. */
const noise = /^(Extra Info:|WARNING:|Fetching data files|Submitting job|-+ ?TOOL_DEBUG)/;

function wordsOf(stderr: string): string[] {
  const words = new Set<string>();
  for (const paragraph of withoutAdvice(stderr).split('\n')) {
    if (paragraph.trim() === '') continue;
    const line = paragraph
      .trimStart()
      .slice(0, longestLine)
      // The time of a debug line.
      .replace(/^\d\d\/\d\d\/\d\d(\d\d)? \d\d:\d\d:\d\d(\.\d+)? (\(pid:\d+\) )?/, '')
      .replace(category, (_, name: string) => (telling.has(name) ? '' : talk))
      .replace(/^-- /, '')
      .trim();
    if (line.startsWith(talk)) continue;
    if (line !== '' && !noise.test(line)) words.add(line);
  }
  return [...words];
}

/** The advice after "Extra Info" is paragraphs long; what matters stands before it. In one pass: a text may begin it a thousand times and never end it. */
function withoutAdvice(text: string): string {
  const pieces = text.split(/(Troubleshooting section of the manual\.?)/);
  let left = '';
  for (let at = 0; at < pieces.length; at += 2) {
    const [piece = '', end = ''] = pieces.slice(at, at + 2);
    const begin = end === '' ? -1 : piece.search(/^Extra Info:/m);
    left += begin < 0 ? piece + end : piece.slice(0, begin);
  }
  return left;
}

/** The line that condor_submit names, or in which the attribute is set that it cannot read. */
function lineOf(said: string, submitted: string): number | undefined {
  const named = /on Line (\d+) of submit file|command file \(line (\d+)\)/i.exec(said);
  if (named !== null) return Number(named[1] ?? named[2]);
  const [, attribute] = /Parse error in expression:\s*(?:MY\.|\+)?(\w+) =/i.exec(said) ?? [];
  if (attribute === undefined) return undefined;
  const at = submitted.split('\n').findIndex((line) => classAdNameIn(line) === attribute.toLowerCase());
  return at < 0 ? undefined : at + 1;
}

/**
 * The attribute that a line of a submit file sets, in lower case: `request_memory = 1` sets `requestmemory`, `+Site = "x"` and
 * `MY.Site = "x"` set `site`. Undefined for other lines.
 */
function classAdNameIn(line: string): string | undefined {
  const [, name] = /^\s*(?:\+|MY\.)?(\w+)\s*=/i.exec(line) ?? [];
  return name?.replaceAll('_', '').toLowerCase();
}

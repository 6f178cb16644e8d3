import { ThresherError } from '../../../worker/errors.ts';
import type { Piece, Placeholder } from './pieces.ts';
import { severalWords, type Value } from './placeholders.ts';

/** Place of a value in a submit description: it decides which values thresher may write there, and how. */
export type Context =
  /** The whole value of a command, or a part of it. */
  | 'plain'
  /** In a list of files, which a comma would divide. */
  | 'item'
  /** In a ClassAd expression, outside its quotes. */
  | 'expression'
  /** In a ClassAd string. */
  | 'string'
  /** In arguments or environment of HTCondor's new syntax, `"..."`. */
  | 'word'
  /** There between single quotes. */
  | 'quoted-word'
  /** In arguments of the old syntax, without quotes around them. */
  | 'old-word'
  /** In environment of the old syntax, where a semicolon begins the next variable. */
  | 'old-variable';

const expressions =
  /^(\+|my\.)|^(requirements|rank|periodic_\w+|on_exit_\w+|request_gpus|require_gpus|leave_in_queue|next_job_start_delay|cron_\w+|deferral_\w+)$/i;
/** HTCondor puts an image among the files that it transfers, too. */
const lists = /^transfer_?(input|output|checkpoint)_?files$|^(container|docker)_?image$/i;
const words = /^(arguments|args|environment|env)$/i;

export function isExpression(key: string): boolean {
  return expressions.test(key);
}

/** The context of each placeholder among the pieces of a command's value, in their order. */
export function contextsOf(key: string, pieces: readonly Piece[]): Context[] {
  if (words.test(key)) {
    const old = /^arg/i.test(key) ? 'old-word' : 'old-variable';
    return isNewSyntax(pieces) ? inWords(pieces) : pieces.flatMap(ofPlaceholder(old));
  }
  if (lists.test(key)) return pieces.flatMap(ofPlaceholder('item'));
  return isExpression(key) ? inExpression(pieces) : pieces.flatMap(ofPlaceholder('plain'));
}

/** Whether a value begins with the double quote of HTCondor's new syntax. */
export function isNewSyntax(pieces: readonly Piece[]): boolean {
  const first = pieces.find((piece) => typeof piece !== 'string' || piece.trim() !== '');
  return typeof first === 'string' && first.trimStart().startsWith('"');
}

const ofPlaceholder =
  (context: Context) =>
  (piece: Piece): Context[] =>
    typeof piece === 'string' ? [] : [context];

function inWords(pieces: readonly Piece[]): Context[] {
  let quoted = false;
  return pieces.flatMap((piece): Context[] => {
    if (typeof piece !== 'string') return [quoted ? 'quoted-word' : 'word'];
    if ((piece.split("'").length - 1) % 2 === 1) quoted = !quoted;
    return [];
  });
}

function inExpression(pieces: readonly Piece[]): Context[] {
  let quoted = false;
  return pieces.flatMap((piece): Context[] => {
    if (typeof piece !== 'string') return [quoted ? 'string' : 'expression'];
    const quotes = piece.replace(/\\./g, '').split('"').length - 1;
    if (quotes % 2 === 1) quoted = !quoted;
    return [];
  });
}

/**
 * A value as it is written there, so that it is only ever that value: no macro, no quote that ends a string, no new
 * line.
 * @throws ThresherError `htcondor-value` where HTCondor has no way to write it.
 */
export function inert(value: Value, placeholder: Placeholder, context: Context): string {
  const { name, width } = placeholder;
  const live = typeof value === 'object' && value !== null ? value.live : undefined;
  const bare = live ?? textOf(value);
  const text = width === undefined ? bare : padded(bare, typeof value === 'number', width);
  const refuse = (why: string) =>
    new ThresherError('htcondor-value', `the value of "${name}", ${JSON.stringify(text)}, ${why}`, { name });
  // They end the line, and with it the command.
  if (/[\u0000-\u001f\u007f\u0085\u2028\u2029]/.test(text)) {
    throw refuse('has a new line or another control character; it must be one line of text');
  }
  // HTCondor replaces `$(DOLLAR)` last, again and again; and `$$` once more when the job is matched.
  const hopeless = live === undefined && (/\$\$|\$\(DOLLAR\)/i.exec(text)?.[0] ?? '');
  if (hopeless)
    throw refuse(`has "${hopeless}" in it, which HTCondor would replace; it has no way to write that`);
  const written = inContext(text, name, context, refuse);
  return live === undefined ? written.replaceAll('$', () => '$(DOLLAR)') : written;
}

function inContext(text: string, name: string, context: Context, refuse: (why: string) => Error): string {
  switch (context) {
    case 'plain':
      return text;
    case 'item':
      if (text.includes(',')) throw refuse('has a comma, which would divide it in this list of files');
      return text;
    case 'string':
      if (text.endsWith('\\')) throw refuse('ends with a backslash, which would take the quote behind it');
      return classAdText(text);
    case 'expression':
      if (!/^[\w.+-]*$/.test(text)) {
        throw refuse('stands in an expression, where it must be a number or a word; put it in quotes there');
      }
      return text;
    case 'old-variable':
      if (text.includes(';'))
        throw refuse('has a semicolon, which begins another variable: write environment = "..."');
      return text;
    case 'old-word':
      if (/\s/.test(text) && !severalWords.has(name)) {
        throw refuse('has a blank, which divides it here: write arguments = "..." with it in single quotes');
      }
      return text.replaceAll('"', '\\"');
    case 'quoted-word':
      return text.replaceAll("'", "''").replaceAll('"', '""');
    case 'word':
      if (severalWords.has(name)) {
        if ((text.split("'").length - 1) % 2 === 1) throw refuse('has a single quote that nothing closes');
        return text.replaceAll('"', '""');
      }
      return word(text);
  }
}

/** Text between the quotes of a ClassAd string: in the old syntax of submit files a backslash is only itself. */
export function classAdText(text: string): string {
  return text.replaceAll('"', '\\"');
}

/** One word of arguments or environment in the new syntax. */
export function word(text: string): string {
  const doubled = text.replaceAll('"', '""');
  return /[\s']/.test(text) ? `'${doubled.replaceAll("'", "''")}'` : doubled;
}

/** As Python's `str.format` writes it. */
export function textOf(value: Exclude<Value, { readonly live: string }> | Value): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'object' ? value.live : String(value);
}

function padded(text: string, number: boolean, { fill, length }: { fill: string; length: number }): string {
  return number ? text.padStart(length, fill) : text.padEnd(length, fill);
}

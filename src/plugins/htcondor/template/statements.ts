import { type Piece, type Placeholder } from './pieces.ts';
import type { Value, Values } from './placeholders.ts';
import { classAdText, contextsOf, inert, isNewSyntax, textOf, word } from './quoting.ts';

/** One command of a submit description. */
export interface Command {
  readonly kind: 'command';
  /** As written: `request_cpus`, `+harvesterID`. */
  readonly key: string;
  readonly line: number;
  /** Placeholders in it. */
  readonly names: readonly string[];
  /** The author's text besides placeholders, for the checks. */
  readonly text: string;
  /** Words of HTCondor's new syntax, with double quotes around all of them. */
  readonly newSyntax?: boolean;
  /** Its value for one worker, as HTCondor reads it. @throws ThresherError `htcondor-value` */
  readonly render: (values: Values) => string;
}

/** `if`, `else`, `endif`: passed on as it is. */
export interface Verbatim {
  readonly kind: 'verbatim';
  readonly text: string;
  readonly line: number;
}

/** The place of `{customSubmitAttributes}`. */
export interface CustomAttributes {
  readonly kind: 'custom-attributes';
  readonly line: number;
}

export type Statement = Command | Verbatim | CustomAttributes;

/**
 * The `when_to_transfer_output` of a job that transfers nothing: older versions of HTCondor took it, as Harvester's
 * example has it, and later ones refuse the whole submission.
 */
export function contradicts(statements: readonly Statement[]): Command | undefined {
  const last = (key: string) =>
    statements.findLast((one): one is Command => one.kind === 'command' && one.key.toLowerCase() === key);
  const never = /^\s*(no|false)\s*$/i.test(last('should_transfer_files')?.text ?? '');
  return never ? last('when_to_transfer_output') : undefined;
}

/** A command of which the author wrote the submit text. */
export function textCommand(key: string, pieces: readonly Piece[], line: number): Command {
  const contexts = contextsOf(key, pieces);
  const newSyntax = isNewSyntax(pieces);
  return command(key, line, pieces, newSyntax, (values) => {
    let nth = 0;
    return pieces
      .map((piece) =>
        typeof piece === 'string' ? piece : inert(valueOf(piece, values), piece, contexts[nth++] ?? 'plain'),
      )
      .join('')
      .trim();
  });
}

/** Arguments of which each word is one, whatever is in it. */
export function argumentsCommand(key: string, list: readonly (readonly Piece[])[], line: number): Command {
  return command(key, line, list.flat(), true, (values) => {
    const written = list.flatMap((pieces) => {
      // An option that is not set is no word at all, and several words are several.
      const [only] = pieces;
      const alone = pieces.length === 1 && typeof only === 'object';
      if (!alone) return [wordOf(pieces, values)];
      const text = inert(valueOf(only, values), only, 'word');
      return text === '' ? [] : [text];
    });
    return `"${written.join(' ')}"`;
  });
}

export function environmentCommand(
  entries: readonly (readonly [name: string, pieces: readonly Piece[]])[],
  line: number,
): Command {
  const all = entries.flatMap(([, pieces]) => pieces);
  return command('environment', line, all, true, (values) => {
    const written = entries.map(([name, pieces]) => `${name}=${quotedOf(pieces, values)}`);
    return `"${written.join(' ')}"`;
  });
}

/** An attribute with a string, or with what a single placeholder stands for. */
export function attributeCommand(key: string, pieces: readonly Piece[], line: number): Command {
  return command(`+${key}`, line, pieces, false, (values) => {
    const [only] = pieces;
    if (pieces.length === 1 && typeof only === 'object') {
      const value = valueOf(only, values);
      if (typeof value === 'number' || typeof value === 'boolean') return textOf(value);
    }
    const written = pieces.map((piece) =>
      typeof piece === 'string' ? classAdText(piece) : inert(valueOf(piece, values), piece, 'string'),
    );
    return `"${written.join('')}"`;
  });
}

function command(
  key: string,
  line: number,
  pieces: readonly Piece[],
  newSyntax: boolean,
  render: (values: Values) => string,
): Command {
  const names = pieces.flatMap((piece) => (typeof piece === 'string' ? [] : [piece.name]));
  const text = pieces.map((piece) => (typeof piece === 'string' ? piece : '')).join('');
  return { kind: 'command', key, line, names, text, newSyntax, render };
}

function wordOf(pieces: readonly Piece[], values: Values): string {
  return pieces.every((piece) => typeof piece === 'string' && piece !== '')
    ? word(pieces.map((piece) => (typeof piece === 'string' ? piece : '')).join(''))
    : quotedOf(pieces, values);
}

function quotedOf(pieces: readonly Piece[], values: Values): string {
  const inside = pieces.map((piece) =>
    typeof piece === 'string'
      ? piece.replaceAll("'", "''").replaceAll('"', '""')
      : inert(valueOf(piece, values), piece, 'quoted-word'),
  );
  return `'${inside.join('')}'`;
}

function valueOf({ name }: Placeholder, values: Values): Value {
  return values[name] ?? null;
}

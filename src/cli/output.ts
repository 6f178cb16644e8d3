import { type Command, Option } from 'commander';
import { oneLine } from '../util/one-line.ts';
import { jsonWithoutOwn, withoutOwn } from '../util/own-secrets.ts';

export { oneLine };

export type OutputFormat = 'table' | 'json';

const formats = ['table', 'json'];

/** `--output`, wherever something is printed. */
export function outputOption(): Option {
  return new Option('--output <format>', 'how to print').choices(formats).default('table');
}

/**
 * The same option before a command. Commander gives it whatever `--output` stands anywhere, and each command has its own
 * formats: so this one has none, and `passOutputOn` hands the value to the command, which judges it.
 */
export function globalOutputOption(): Option {
  return new Option(
    '--output <format>',
    'how to print, for every command that has this option; the command says which formats it knows',
  );
}

/** @throws CommanderError for a command that prints nothing of the kind, or not in this format. */
export function passOutputOn(program: Command, action: Command): void {
  const { output } = program.opts<{ output?: string }>();
  if (output === undefined) return;
  const option = action.options.find(({ long }) => long === '--output');
  if (option === undefined) return program.error(`error: ${action.name()} has no option --output`);
  const choices = option.argChoices;
  if (choices !== undefined && !choices.includes(output)) {
    const message = `option '${option.flags}' argument '${output}' is invalid. Allowed choices are ${choices.join(', ')}.`;
    return program.error(`error: ${message}`);
  }
  const isSaid = action.getOptionValueSource('output') === 'cli';
  if (!isSaid) action.setOptionValueWithSource('output', output, 'cli');
}

/** Prints what a program or a file takes on as it is: a token or a Secret is what the command was asked for, and nothing of it is hidden. */
export function printExact(out: NodeJS.WritableStream, text: string): void {
  out.write(Buffer.from(text));
}

/** Always an array of objects: scripts need one rule only. */
export function printJson(out: NodeJS.WritableStream, rows: readonly unknown[]): void {
  // A stream that hides secrets would hide them in the whole of it, and leave no JSON.
  printExact(out, `${jsonWithoutOwn(rows, 2)}\n`);
}

/** The same stream for texts that may have words of others in them: they are written without the secrets of this process. Bytes are written as they are: logs of workers, and what is printed exactly. */
export function withoutSecrets(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  const write = (piece: string | Uint8Array, ...more: never[]) =>
    stream.write(typeof piece === 'string' ? withoutOwn(piece) : piece, ...more);
  return new Proxy(stream, {
    get: (target, key) => (key === 'write' ? write : (Reflect.get(target, key) as unknown)),
  });
}

export interface Column<Row> {
  readonly title: string;
  /** null and "" are shown as "-". */
  readonly value: (row: Row) => string | number | null;
}

/** Rows under aligned titles; the last column may be as long as it likes. */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  const cells = [
    columns.map((column) => column.title),
    ...rows.map((row) => columns.map((column) => cell(column.value(row)))),
  ];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]?.length ?? 0)));
  return cells.map((line) =>
    line
      .map((text, at) => (at === line.length - 1 ? text : text.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

export function printTable<Row>(
  out: NodeJS.WritableStream,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): void {
  for (const line of formatTable(columns, rows)) out.write(`${line}\n`);
}

function cell(value: string | number | null): string {
  return value === null || value === '' ? '-' : oneLine(String(value));
}

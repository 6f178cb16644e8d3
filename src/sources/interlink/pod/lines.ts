/**
 * The form in which the runner gets data: a line is a key, a space and a value, or several fields with a space between. The value
 * is as it is, but for the characters that end a line or begin an escape: `printf %b` of a shell gives them back. No shell evaluates it.
 */
const escaped: Readonly<Record<string, string>> = { '\\': '\\0134', '\n': '\\0012', '\r': '\\0015' };

/** One value at the end of a line. */
export function lineOf(key: string, value: string): string {
  return `${key} ${value.replaceAll(/[\\\n\r]/g, (one) => escaped[one] ?? '')}`;
}

/** Fields of one line, none of them empty. */
export function fieldsOf(key: string, ...fields: readonly (string | number)[]): string {
  const field = (text: string) =>
    text
      .replaceAll(/[\\\n\r]/g, (one) => escaped[one] ?? '')
      .replaceAll(' ', '\\0040')
      .replaceAll('\t', '\\0011');
  return [key, ...fields.map((one) => field(String(one)))].join(' ');
}

/** NUL and half a character reach no program. */
export function isText(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed();
}

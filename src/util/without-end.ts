/**
 * A text without the characters of `set` at its end: `withoutEnd(path, '/')`. A regular expression such as `/\/+$/` would begin
 * anew at each slash of a text, in time that grows with the square of their number.
 */
export function withoutEnd(text: string, set: string): string {
  let end = text.length;
  while (end > 0 && set.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

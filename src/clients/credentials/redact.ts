/** What stands where a secret would be shown. */
const hidden = '(hidden)';

/**
 * A line of somebody else's words without what looks like a secret: a line of PEM, a token, and `secrets`, which are known to
 * be some.
 */
export function withoutSecrets(line: string, secrets: readonly string[]): string {
  if (/^[\w+/=]{20,}$/.test(line) && !line.startsWith('/')) return hidden;
  let shown = line.replace(/[\w-]{10,}\.[\w-]{10,}\.[\w-]+/g, hidden);
  for (const secret of secrets) if (secret.trim().length > 3) shown = shown.replaceAll(secret.trim(), hidden);
  return shown;
}

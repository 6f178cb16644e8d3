import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { hidden } from '../../util/secrets.ts';

/**
 * A line of another program's words without anything that looks like a secret: a piece of PEM, a token, and `secrets`,
 * which are known to be some, also in the form that a URL has. A path stays if such a file exists, or a directory for
 * it.
 */
export function withoutSecrets(line: string, secrets: readonly string[]): string {
  let shown = line.replace(/(?<![\w-])[\w-]{10,}\.[\w-]{10,}\.[\w-]+/g, hidden);
  for (const secret of secrets.map((one) => one.trim()).filter((one) => one.length > 3)) {
    const inForm = new URLSearchParams({ s: secret }).toString().slice(2);
    for (const text of [secret, encodeURIComponent(secret), inForm]) shown = shown.replaceAll(text, hidden);
  }
  return shown.replace(/[\w+/=-]{20,}/g, (text) => (words.test(text) || isPath(text) ? text : hidden));
}

/** "x509-trusted-ca-directory": no piece of it is long enough for a secret. */
const words = /^([a-z0-9]{1,12}[-/])*[a-z0-9]{1,12}$/;

function isPath(text: string): boolean {
  if (!text.startsWith('/')) return false;
  return existsSync(text) || (dirname(text) !== '/' && existsSync(dirname(text)));
}

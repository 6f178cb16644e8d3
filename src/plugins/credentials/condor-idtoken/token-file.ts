import { readToken, type TokenFacts } from '../../../clients/credentials/jwt.ts';
import { ThresherError } from '../../../worker/errors.ts';

/** Files that HTCondor does not read in a directory. Source: its default LOCAL_CONFIG_DIR_EXCLUDE_REGEXP. */
const excluded = /^((\..*)|(.*~)|(#.*)|(.*\.rpmsave)|(.*\.rpmnew))$/;

export function isTokenFile(name: string): boolean {
  return !excluded.test(name);
}

/**
 * The token of a file that ends first: it may have several, one a line, and comments. HTCondor tries whichever fits a
 * server, so the first to end is the first to be missed.
 * @throws ThresherError `credential-wrong`
 */
export function firstToEnd(text: string, source: string): TokenFacts {
  const lines = text.split('\n').map((line, at) => ({ line: line.trim(), number: at + 1 }));
  const tokens = lines
    .filter(({ line }) => line !== '' && !line.startsWith('#'))
    .map(({ line, number }) => readToken(line, lines.length > 1 ? `${source}, line ${number},` : source));
  const [first] = tokens.toSorted((a, b) => (a.expiresAt ?? Infinity) - (b.expiresAt ?? Infinity));
  if (first !== undefined) return first;
  throw new ThresherError('credential-wrong', `${source} has no token`, { file: source });
}

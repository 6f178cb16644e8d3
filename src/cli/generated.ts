import { readFileSync } from 'node:fs';

/**
 * A page that `npm run docs` makes of the whole command line. Printing it must not import every command: a shell asks for
 * its completion at each start.
 */
export function generatedPage(name: 'thresher.8' | 'thresher.bash'): string {
  // src/ and dist/ lie at the same depth.
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
}

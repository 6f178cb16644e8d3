import { readFileSync } from 'node:fs';
import { type Command, Argument } from 'commander';
import type { Environment } from './environment.ts';

/**
 * A page that `npm run docs` makes of the whole command line. Printing it must not import every command: a shell asks for
 * its completion at each start.
 */
export function generatedPage(name: 'thresher.8' | 'thresher.bash'): string {
  // src/ and dist/ lie at the same depth.
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
}

export function addMan(command: Command, { out }: Environment): void {
  command.action(() => {
    out.write(generatedPage('thresher.8'));
  });
}

export function addCompletion(command: Command, { out }: Environment): void {
  command.addArgument(new Argument('<shell>', 'which shell').choices(['bash'])).action(() => {
    out.write(generatedPage('thresher.bash'));
  });
}

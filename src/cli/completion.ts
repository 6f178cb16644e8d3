import { Argument, type Command } from 'commander';
import type { Environment } from './environment.ts';
import { generatedPage } from './generated.ts';

export function addCompletion(command: Command, { out }: Environment): void {
  command.addArgument(new Argument('<shell>', 'which shell').choices(['bash'])).action(() => {
    out.write(generatedPage('thresher.bash'));
  });
}

import type { Command } from 'commander';
import type { Environment } from './environment.ts';
import { generatedPage } from './generated.ts';

export function addMan(command: Command, { out }: Environment): void {
  command.action(() => {
    out.write(generatedPage('thresher.8'));
  });
}

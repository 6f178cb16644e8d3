import type { Command } from 'commander';
import { readVersion } from '../daemon/version.ts';
import type { Environment } from './environment.ts';
import { type OutputFormat, outputOption, printJson } from './output.ts';

export function addVersion(program: Command, environment: Environment): void {
  program
    .command('version')
    .description('versions of thresher and of the Node it runs on')
    .addOption(outputOption())
    .action(({ output }: { output: OutputFormat }) => {
      const version = readVersion();
      const node = process.versions.node;
      if (output === 'json') printJson(environment.out, [{ version, node }]);
      else environment.out.write(`thresher ${version} (Node ${node})\n`);
    });
}

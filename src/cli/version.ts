import type { Command } from 'commander';
import { readVersion } from '../util/version.ts';
import type { Environment } from './environment.ts';
import { type OutputFormat, outputOption, printJson } from './output.ts';

export function addVersion(command: Command, environment: Environment): void {
  command.addOption(outputOption()).action(({ output }: { output: OutputFormat }) => {
    const version = readVersion();
    const node = process.versions.node;
    if (output === 'json') printJson(environment.out, [{ version, node }]);
    else environment.out.write(`thresher ${version} (Node ${node})\n`);
  });
}

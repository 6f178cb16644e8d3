import type { Command } from 'commander';
import { readVersion } from '../util/version.ts';
import type { Environment } from './environment.ts';
import { type OutputFormat, outputOption, printJson } from './output.ts';

export function addVersion(command: Command, environment: Environment): void {
  command.addOption(outputOption()).action(({ output }: { output: OutputFormat }) => {
    if (output === 'json') printJson(environment.out, [versions()]);
    else environment.out.write(versionText());
  });
}

export function versionText(): string {
  const { version, node } = versions();
  return `thresher ${version} (Node ${node})\n`;
}

function versions() {
  return { version: readVersion(), node: process.versions.node };
}

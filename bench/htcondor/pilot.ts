import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';

const delivered = resolve(import.meta.dirname, '../../templates/htcondor/pilot.yaml');

/** A pilot that waits for a slot for ever: nothing but its submission is looked at. */
export const neverMatches = { requirements: 'false' } as const;

/** The program that every pilot runs by default. */
export function writeWrapper(directory: string): string {
  const file = join(directory, 'wrapper.sh');
  writeFileSync(file, '#!/bin/sh\nexec true\n');
  chmodSync(file, 0o755);
  return file;
}

/** The template as it is delivered; its files are in a directory that belongs to the jobs, which are not the benchmark's. */
export function pilotTemplate(
  directory: string,
  more: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const template = parse(readFileSync(delivered, 'utf8')) as Record<string, unknown>;
  const file = (ending: string) => join(directory, `\${workerID}.$(Cluster).$(Process).${ending}`);
  return { ...template, log: file('log'), output: file('out'), error: file('err'), ...more };
}

/** The same pilot by hand: what somebody would write who wants so many and no factory. */
export function bareDescription(directory: string, wrapper: string, count: number): string {
  const file = (ending: string) => join(directory, `bare.$(Cluster).$(Process).${ending}`);
  return `${[
    'universe = vanilla',
    `executable = ${wrapper}`,
    'arguments = "-s BENCH -q BENCH -j managed -i PR --harvester-submit-mode PULL"',
    'environment = "PANDA_JSID=harvester-bench HARVESTER_ID=bench HARVESTER_WORKER_ID=$(Process) GTAG=None"',
    ...['should_transfer_files = true', 'when_to_transfer_output = ON_EXIT'],
    ...[`log = ${file('log')}`, `output = ${file('out')}`, `error = ${file('err')}`],
    ...['request_cpus = 1', 'request_memory = 2000', 'request_disk = 1024', 'requirements = false'],
    `queue ${count}`,
  ].join('\n')}\n`;
}

import { chmodSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { stringify } from 'yaml';
import { type CondorSpace, type Pool, type ScheddKind } from './htcondor.ts';
import { Site, type SiteOptions } from './site.ts';

/** The environment in which thresher finds the pool, as a service's unit file would give it. */
export function condorEnvironment(pool: Pool, directory: string): Record<string, string> {
  const config = join(directory, 'condor_config');
  const { config: common, tokens } = pool.local;
  writeFileSync(config, `include : ${common}\nSEC_TOKEN_DIRECTORY = ${tokens}\n`);
  return { CONDOR_CONFIG: config, PATH: `${pool.programs}${delimiter}${process.env['PATH'] ?? ''}` };
}

/** A template of a pilot that does what a shell is told, and writes below `directory`. */
export function shellTemplate(
  { directory }: Pick<CondorSpace, 'directory'>,
  script: string,
  more: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    universe: 'vanilla',
    executable: '/bin/sh',
    transfer_executable: false,
    arguments: ['-c', script],
    environment: { HARVESTER_WORKER_ID: '${workerID}' },
    initialdir: directory,
    output: 'out.${workerID}',
    error: 'err.${workerID}',
    should_transfer_files: 'YES',
    when_to_transfer_output: 'ON_EXIT',
    transfer_output_files: '""',
    request_memory: 64,
    request_disk: 1024,
    ...more,
  };
}

/** Which schedd, as a queue's section says it. */
export function whereOf(pool: Pool, kind: ScheddKind): Record<string, unknown> {
  if (kind === 'local') return {};
  return { condorSchedd: pool.remote.schedd, condorPool: pool.pool, useSpool: true };
}

/** The plugin sections of a queue. */
export function condorQueue(
  pool: Pool,
  options: {
    readonly template: string;
    readonly kind?: ScheddKind;
    readonly submitter?: Readonly<Record<string, unknown>>;
    readonly monitor?: Readonly<Record<string, unknown>>;
    readonly queue?: Readonly<Record<string, unknown>>;
  },
): Record<string, unknown> {
  const { template, kind = 'local' } = options;
  const module = (part: string) => `pandaharvester.harvester${part}.htcondor_${part}`;
  const where = whereOf(pool, kind);
  return {
    demand: 'fill',
    maxWorkers: 1,
    nQueueLimitWorker: 1,
    submitter: {
      name: 'HTCondorSubmitter',
      module: module('submitter'),
      ...where,
      templateFile: template,
      logDir: 'logs',
      ...options.submitter,
    },
    monitor: {
      name: 'HTCondorMonitor',
      module: module('monitor'),
      ...where,
      pollInterval: 0.5,
      ...options.monitor,
    },
    sweeper: { name: 'HTCondorSweeper', module: module('sweeper'), ...where },
    ...options.queue,
  };
}

/** A site whose queue file may name these templates. */
export function condorSite(options: SiteOptions, templates: Readonly<Record<string, unknown>>): Site {
  const site = new Site(options);
  chmodSync(site.directory, 0o755);
  for (const [name, template] of Object.entries(templates)) {
    writeFileSync(site.path(name), typeof template === 'string' ? template : stringify(template));
  }
  return site;
}

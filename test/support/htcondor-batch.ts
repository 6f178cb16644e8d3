import { join } from 'node:path';
import { HTCondorSubmitterConfig } from '../../src/plugins/htcondor/schema.ts';
import type { DescribeOptions } from '../../src/plugins/htcondor/template/describe.ts';
import type { ChosenCe } from '../../src/plugins/htcondor/template/placeholders.ts';
import { type CondorTemplate, parseTemplate } from '../../src/plugins/htcondor/template/template.ts';
import { check } from '../../src/util/schema.ts';

/** Options of a submitter with the schema's defaults. */
export function submitterConfig(options: object = {}): HTCondorSubmitterConfig {
  const checked = check(HTCondorSubmitterConfig, options);
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return checked.value;
}

export const ce: ChosenCe = {
  endpoint: 'ce1.site.org:9619',
  hostname: 'ce1.site.org',
  flavour: 'htcondor-ce',
  jobmanager: 'slurm',
  queueName: 'grid',
  version: '24',
  gridType: '',
};

export function batchOptions(directory: string, changes: Partial<DescribeOptions> = {}): DescribeOptions {
  return {
    factoryId: 'thresher-test',
    harvesterId: 'CERN_test',
    hostname: 'here',
    config: submitterConfig({ logDir: directory, executableFile: join(directory, 'wrapper.sh') }),
    sdfPath: join(directory, 'batch.sub'),
    submissionHost: 'LOCAL',
    now: Date.UTC(2026, 7, 31, 14, 5),
    random: () => 0.5,
    ...changes,
  };
}

export function templateOf(
  text: string,
  file = 'pilot.sdf',
  config: Partial<HTCondorSubmitterConfig> = submitterConfig(),
): CondorTemplate {
  const loaded = parseTemplate(text, file, config);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.template;
}

import { expect } from 'chai';
import { cricPage } from '../../scripts/cric-page.ts';
import { rules } from '../../src/config/cric/derived.ts';
import { cricFields } from '../../src/config/cric/fields.ts';
import { QueueOptions, WorkerOptions } from '../../src/config/queues/queue-schema.ts';
import { HTCondorSubmitterConfig } from '../../src/plugins/htcondor/schema.ts';
import {
  K8sMonitorConfig,
  K8sSubmitterConfig,
  K8sSweeperConfig,
} from '../../src/plugins/kubernetes/schema.ts';
import { sizeNames } from '../../src/plugins/contracts/sizes.ts';

const schemas = [
  ...[QueueOptions, WorkerOptions, HTCondorSubmitterConfig],
  ...[K8sSubmitterConfig, K8sMonitorConfig, K8sSweeperConfig],
];
const known = new Set(schemas.flatMap(({ properties }) => Object.keys(properties)));
const options = [...cricFields.map(({ option }) => option), ...rules.flatMap((rule) => rule.options)];

describe('the table of what CRIC says', () => {
  it('names only options that there are', () => {
    expect(options.filter((option) => !known.has(option))).to.deep.equal([]);
  });

  it('has every option that a queue needs', () => {
    expect(options).to.include.members([
      ...sizeNames,
      'nCore',
      'ceList',
      'k8s.namespace',
      'customSubmitAttributes',
    ]);
  });

  it('has every option with a name of CRIC that Kubernetes queues have', () => {
    const ofCric = Object.keys(K8sSubmitterConfig.properties).filter((option) => option.startsWith('k8s.'));
    // These become options with the names of queue files, before which they would count otherwise.
    const ratios = ofCric.filter((option) => option.endsWith('_scheduling_ratio'));
    expect(options).to.include.members(ofCric.filter((option) => !ratios.includes(option)));
    const fields = cricFields.map(({ field }) => field.at(-1));
    expect(fields).to.include.members(ratios);
  });

  it('stands whole on its page', () => {
    const page = cricPage();
    for (const option of options) expect(page).to.include(`\`${option}\``);
  });
});

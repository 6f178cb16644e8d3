import { expect } from 'chai';
import { valuesOf } from '../../src/plugins/htcondor/template/placeholders.ts';
import { type FillOptions, pilotEnvironment } from '../../src/plugins/kubernetes/template/environment.ts';
import { K8sSubmitterConfig } from '../../src/plugins/kubernetes/schema.ts';
import { check } from '../../src/util/schema.ts';
import { batchOptions, submitterConfig } from '../support/htcondor-batch.ts';
import { requirements, workerOf } from '../support/samples.ts';

/** What the wrapper is told of the pilot, by the names of HTCondor's placeholders. */
const places = [
  ['pilotUrlOption', 'pilotUrlOpt'],
  ['pilotVersion', 'pilotVersion'],
  ['pilotType', 'pilotType'],
  ['pilotPythonOption', 'pythonOption'],
  ['pilotJobLabel', 'prodSourceLabel'],
  ['pilotJobType', 'jobType'],
] as const;

function onHTCondor(pilotType: string, options: object): unknown[] {
  const worker = workerOf(1, { requirements: { ...requirements, pilotType } });
  const config = submitterConfig(options);
  const values = valuesOf(worker, { ...batchOptions('/logs'), config, random: () => 0.5 });
  return places.map(([placeholder]) => values[placeholder]);
}

function onKubernetes(pilotType: string, options: object): unknown[] {
  const worker = workerOf(1, { requirements: { ...requirements, pilotType } });
  const config = check(K8sSubmitterConfig, { k8s_yaml_file: 'x', ...options });
  if (!config.ok) throw new Error(JSON.stringify(config.problems));
  const fill: FillOptions = {
    factoryId: 'f',
    harvesterId: 'h',
    hostname: 'here',
    config: config.value,
  };
  const environment = pilotEnvironment(worker, fill, {});
  return places.map(([, variable]) => environment.get(variable)?.value);
}

describe('a pilot', () => {
  const versions = [{}, { pilot_version: '3.9.1' }, { pilot_version: '2.1' }];
  const queues = [...versions, { python_version: '2' }, { pilot_url: 'https://site/pilot.tar.gz' }];
  for (const pilotType of ['PR', 'RC', 'ALRB', 'PT', 'toString'])
    it(`of type ${pilotType} is the same on HTCondor and on Kubernetes, whatever the queue says of it`, () => {
      for (const queue of queues)
        expect(onHTCondor(pilotType, queue), JSON.stringify(queue)).to.deep.equal(
          onKubernetes(pilotType, queue),
        );
    });

  it('under test at the current version is one of the third generation', () => {
    for (const [pilotType, archive] of [
      ['RC', 'dev'],
      ['PT', 'dev2'],
    ] as const)
      for (const where of [onHTCondor, onKubernetes])
        expect(where(pilotType, {})[0]).to.equal(
          `--piloturl http://cern.ch/atlas-panda-pilot/pilot3-${archive}.tar.gz`,
        );
  });
});

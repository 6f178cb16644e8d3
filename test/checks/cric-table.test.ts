import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from 'chai';
import { queueKeys } from '../../src/config/queues/queue-keys.ts';
import { WorkerOptions } from '../../src/config/queues/queue-schema.ts';
import { ComputingElement, HTCondorSubmitterConfig } from '../../src/plugins/htcondor/schema.ts';
import { K8sSubmitterConfig } from '../../src/plugins/kubernetes/schema.ts';
import { sizeNames } from '../../src/plugins/contracts/sizes.ts';

const page = readFileSync(resolve(import.meta.dirname, '../../docs/from-harvester.md'), 'utf8');
const rows = page.split('\n').filter((line) => line.startsWith('| `'));
const columns = rows.map((row) => row.split(/ *\| */).slice(1, 4));
const namesIn = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

describe('the table of what CRIC says', () => {
  it('names only options that there are', () => {
    const schemas = [WorkerOptions, ComputingElement, HTCondorSubmitterConfig, K8sSubmitterConfig];
    const known = new Set([
      ...schemas.flatMap(({ properties }) => Object.keys(properties)),
      ...queueKeys,
      // Values, not options.
      ...['fill', 'self', 'default', 'qconf.queueList'],
    ]);
    const named = columns.flatMap(([, , option]) => namesIn(option));
    expect(named).to.not.deep.equal([]);
    expect(named.filter((name) => !known.has(name))).to.deep.equal([]);
  });

  it('has every field that a queue needs where CRIC is not read', () => {
    const options = columns.flatMap(([, , option]) => namesIn(option));
    for (const name of [...sizeNames, 'nCore', 'ceList', 'k8s_namespace', 'customSubmitAttributes'])
      expect(options).to.include(name);
  });
});

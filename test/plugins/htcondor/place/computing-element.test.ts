import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Context } from '../../../../src/plugins/contracts/index.ts';
import { HTCondorConnection } from '../../../../src/plugins/htcondor/connection.ts';
import { htcondorBackend } from '../../../../src/plugins/htcondor/index.ts';
import type { HTCondorSchedd } from '../../../../src/plugins/htcondor/schedd.ts';
import { connectionAt, partOf } from '../../../support/backend-parts.ts';
import { pluginContext } from '../../../support/plugin-context.ts';
import { workerOf } from '../../../support/samples.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const { signal } = new AbortController();
const definition = htcondorBackend.find(({ kind }) => kind === 'submitter');
const worker = workerOf(7, { placement: 'htcondor:LOCAL' });

describe('the computing element of a worker', () => {
  let context: Context;
  let directory: string;

  beforeEach(() => {
    directory = temporaryDirectory();
    context = pluginContext({ stateDir: join(directory, 'state'), configDir: directory });
    const template =
      'executable = /bin/true\nuniverse = grid\ngrid_resource = condor {ceHostname} {ceEndpoint}\n';
    writeFileSync(join(directory, 'pilot.sdf'), template);
  });

  /** A queue of these CEs, and its schedd; nothing runs a command of HTCondor. */
  function queueAt(ces: object) {
    const section = { templateFile: 'pilot.sdf', logDir: directory, ...ces };
    const submitter = partOf(definition, 'submitter', section, context);
    const connection = definition && connectionAt(definition, section, context);
    if (!(connection instanceof HTCondorConnection)) throw new Error('it is of another backend');
    return { submitter, monitor: connection.monitor, client: connection.schedd.client };
  }

  /** The schedd shows one job of the worker, with these attributes. */
  function showJob(client: HTCondorSchedd['client'], attributes: object): void {
    const ad = {
      ClusterId: 12,
      ProcId: 0,
      harvesterWorkerID: '7',
      JobStatus: 1,
      Owner: 'pilot',
      ...attributes,
    };
    client.whoAmI = async () => 'pilot@pool.test';
    client.queueAs = async (read) => [read(ad)].filter((one) => one !== undefined);
  }

  for (const [what, ces, mark, element] of [
    ['its endpoint', { ceEndpoint: 'ce.site.test:9619' }, 'ce.site.test:9619', 'ce.site.test:9619'],
    [
      'the host and port of its endpoint',
      { ceEndpoint: 'https://arc.example.org:443/arex' },
      'https://arc.example.org:443/arex',
      'arc.example.org:443',
    ],
    ['its machine without an endpoint', { ceHostname: 'ce.site.test' }, 'ce.site.test', 'ce.site.test'],
  ] as const)
    it(`is ${what}, in the mark, the outcomes and the observation`, async () => {
      const { submitter, monitor, client } = queueAt(ces);
      let description = '';
      client.submit = async (text) => {
        description = text;
        return [{ cluster: 12, proc: 0 }];
      };
      const sent = (await submitter.submit([worker], signal)).get(7);
      expect(sent).to.deep.include({ kind: 'accepted', computingElement: element });
      expect(description).to.contain(`+thresherCe = "${mark}"`);
      showJob(client, { thresherCe: mark });
      const found = (await submitter.find([worker], signal)).get(7);
      expect(found).to.deep.include({ kind: 'found', computingElement: element });
      const seen = (await monitor.check([worker], signal)).get(7);
      expect(seen?.kind === 'observed' && seen.observation.computingElement).to.equal(element);
    });

  it('is not known from an empty mark', async () => {
    const { submitter, client } = queueAt({ ceHostname: 'ce.site.test' });
    showJob(client, { thresherCe: '' });
    const found = (await submitter.find([worker], signal)).get(7);
    expect(found).to.include({ kind: 'found' }).and.not.to.have.property('computingElement');
  });
});

import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { controlPlane, type Namespace } from '../support/kubernetes.ts';
import { jobTemplate, kubernetesQueue } from '../support/kubernetes-site.ts';
import { newDatabase, sharedPostgresql } from '../support/postgresql.ts';
import { Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const contracts = pathToFileURL(join(import.meta.dirname, '../../src/plugins/contracts/index.ts')).href;

/** A source that counts its lives, and writes down where it lives. What it knows it reads once, as the link to a PanDA server does. */
const countingSource = (lives: string) => `
import { appendFileSync } from 'node:fs';
import { defineSource } from ${JSON.stringify(contracts)};
import Type from ${JSON.stringify(import.meta.resolve('typebox'))};
export const source = defineSource({
  name: 'counting',
  module: 'counting',
  config: Type.Object({}),
  create: (_, { memory, stateDir }) => {
    let known;
    return {
      wanted: async () => ({ requests: [], groups: [], reasons: [] }),
      run: async (desk, signal) => {
        known ??= Number((await memory.read('lives')) ?? 0);
        known++;
        await memory.write('lives', String(known));
        const say = (what) => appendFileSync(${JSON.stringify(lives)}, what + ' ' + stateDir + ' ' + known + '\\n');
        say('begins');
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        say('ends');
      },
    };
  },
});
`;

describe('a source with a life of its own, where daemons share the queues', () => {
  let space: Namespace;
  let sites: readonly [Site, Site];
  let lives: string;

  beforeEach(async () => {
    const plane = await controlPlane();
    const server = await sharedPostgresql();
    const url = server.url(await newDatabase());
    space = await plane.namespace('moves');
    const files = temporaryDirectory();
    lives = join(files, 'lives');
    appendFileSync(lives, '');
    const [kubeconfig, template, module] = ['kubeconfig', 'job.yaml', 'counting.ts'].map((name) =>
      join(files, name),
    ) as [string, string, string];
    plane.writeKubeconfig(kubeconfig);
    writeFileSync(template, stringify(jobTemplate()));
    writeFileSync(module, countingSource(lives));
    const queue = { demand: 'counting', maxWorkers: 1, nQueueLimitWorker: 1 };
    const make = (member: string) =>
      new Site({
        settings: {
          master: { factoryId: 'moves', shutdownTimeout: 2 },
          database: {
            url,
            sslmode: 'disable',
            leaseDuration: 3,
            shareQueues: true,
            member,
            queueOwners: { Q: 'two' },
          },
          sources: { counting: { module } },
        },
        queues: { Q: kubernetesQueue(space, { kubeconfig, template, queue }) },
      });
    sites = [make('one'), make('two')];
  });

  afterEach(async () => {
    for (const site of sites) await site.clean();
    await space[Symbol.asyncDispose]();
  });

  it('lives at one daemon at a time, and knows what it knew wherever it lives', async () => {
    const [one, other] = sites.map(({ stateDir }) => stateDir) as [string, string];
    const said = () =>
      readFileSync(lives, 'utf8').trim().replaceAll(one, 'one').replaceAll(other, 'two').split('\n');
    const untilSaid = (line: string) => until(`"${line}" is last`, () => said().at(-1) === line);
    sites[0].start();
    await untilSaid('begins one 1');
    // The owner of its queue joins.
    const two = sites[1].start();
    await untilSaid('begins two 2');
    two.process.kill('SIGTERM');
    await two.ended;
    await untilSaid('begins one 3');
    sites[1].start();
    await untilSaid('begins two 4');
    expect(said()).to.deep.equal([
      'begins one 1',
      'ends one 1',
      'begins two 2',
      'ends two 2',
      'begins one 3',
      'ends one 3',
      'begins two 4',
    ]);
  });
});

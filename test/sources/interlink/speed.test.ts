import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import type { Planner } from '../../../src/sources/interlink/planner.ts';
import { podOf } from '../../support/interlink-client.ts';
import { plainPlanner, SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('the work of the sidecar for interLink', () => {
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;
  /** UIDs, one for each plan. */
  let planned: string[];
  const planner: Planner = (data) => {
    planned.push(data.pod.metadata.uid ?? '');
    return plainPlanner(data);
  };

  beforeEach(async () => {
    planned = [];
    sidecar = new SidecarUnderTest(join(temporaryDirectory(), 'root'), planner);
    app = await sidecar.start();
  });
  afterEach(() => sidecar.stop());

  const ask = (method: 'GET' | 'POST', url: string, body: unknown) =>
    app.inject({
      method,
      url,
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(body),
    });
  const podsOf = (count: number) =>
    Array.from({ length: count }, (_, index) => podOf(`pod-${index}`, randomUUID(), 'true'));
  const create = (pod: unknown) => ask('POST', '/create', { pod, container: null, jobConfig: {} });

  it('for a status is a look into memory: 500 of them start no program, compile no schema and plan no Pod', async () => {
    const pods = podsOf(20);
    await Promise.all(pods.map(create));
    const [first] = pods;
    await ask('GET', '/status', [first]);
    planned = [];
    let programs = 0;
    const count = () => programs++;
    const compiled: unknown[] = [];
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is put back, and called with its own `this`
    const { compile } = Ajv.prototype;
    Ajv.prototype.compile = function (this: Ajv, ...given: Parameters<typeof compile>) {
      compiled.push(given[0]);
      return compile.apply(this, given);
    } as typeof compile;
    subscribe('child_process', count);
    try {
      for (let round = 0; round < 25; round++)
        for (const pod of pods) {
          const { statusCode, payload } = await ask(round % 2 === 0 ? 'GET' : 'POST', '/status', [pod]);
          expect(statusCode, payload).to.equal(200);
        }
    } finally {
      unsubscribe('child_process', count);
      Ajv.prototype.compile = compile;
    }
    expect({ programs, compiled, planned }).to.deep.equal({ programs: 0, compiled: [], planned: [] });
  });

  it('for a Pod that waits is done once, however long and beside however many others it waits', async () => {
    sidecar.submits = false;
    const pods = podsOf(40);
    const answers = Promise.all(pods.map(create));
    // Once to accept it, and once to ask for its job.
    await until('all of them are asked for', async () => {
      await sidecar.pass();
      return planned.length >= 2 * pods.length;
    });
    for (let pass = 0; pass < 20; pass++) await sidecar.pass();
    sidecar.submits = true;
    await sidecar.pass();
    expect((await answers).map(({ statusCode }) => statusCode)).to.deep.equal(pods.map(() => 200));
    expect(planned.toSorted()).to.deep.equal(pods.flatMap(({ metadata: { uid } }) => [uid, uid]).sort());
  });

  it('leaves the body of a Pod, with its Secrets, in memory only until its job has an id, and on the disk until its end', async () => {
    const pod = podOf('one', randomUUID(), 'true');
    const { uid } = pod.metadata;
    sidecar.submits = false;
    const answer = create(pod);
    await until('it is asked for', async () => {
      await sidecar.pass();
      return sidecar.wanted.length > 0;
    });
    // Its plan is what is in memory of it.
    expect(sidecar.book.get(uid)?.body).to.equal(undefined);
    sidecar.submits = true;
    await sidecar.pass();
    expect((await answer).statusCode).to.equal(200);
    await sidecar.pass();
    expect(sidecar.wanted).to.deep.equal([]);
    const onDisk = () => readFileSync(join(sidecar.root, 'pods', `${uid}.json`), 'utf8');
    expect(JSON.parse(onDisk())).to.have.property('data');
    await sidecar.tell(uid, { status: 'finished' });
    await until('it is gone from the disk', () => !onDisk().includes('"data"'));
  });
});

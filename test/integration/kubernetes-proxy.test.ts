import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { KubernetesBackend } from '../support/kubernetes-backend.ts';
import { jobTemplate } from '../support/kubernetes-site.ts';
import { controlPlane, type Job, type KubeObject } from '../support/kubernetes.ts';

const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`;
const encoded = (name: string) => Buffer.from(pem(name)).toString('base64');
const minutes = 60_000;

interface Secret extends KubeObject {
  readonly data: Readonly<Record<string, string>>;
}

describe('a proxy whose content goes to pilots', () => {
  it('is in one Secret per content, in no Job, and swept an hour after its last use when no Job has it', async () => {
    const plane = await controlPlane();
    await using space = await plane.namespace('proxy');
    // Runs as any clock, and can be put forward: requests go through a real server.
    let forward = 0;
    const clock: Clock = {
      now: () => systemClock.now() + forward,
      monotonic: () => systemClock.monotonic() + forward,
      sleep: (ms, signal) => systemClock.sleep(ms, signal),
    };
    const backend = new KubernetesBackend(plane, space, { clock });
    const submit = async (name: string) => {
      writeFileSync(join(backend.directory, 'x509'), pem(name));
      return backend.submit(backend.worker(), jobTemplate(), { x509UserProxy: 'x509' });
    };
    const secrets = async () => {
      const all = await space.client.list<Secret>(space.core('secrets'), 'thresher/proxy-secret');
      return all.map(({ data }) => data.proxy).toSorted();
    };
    const sweeper = backend.plugin('sweeper');
    const sweep = () => sweeper.list(AbortSignal.timeout(60_000));
    const [first] = [await submit('first'), await submit('first'), await submit('second')];
    expect(await secrets()).to.deep.equal([encoded('first'), encoded('second')].toSorted());
    const jobs = await space.client.list<Job>(space.jobs());
    expect(jobs).to.have.length(3);
    expect(JSON.stringify(jobs)).not.to.match(/CERTIFICATE/);
    expect(JSON.stringify(jobs)).not.to.include(encoded('first').slice(0, 30));

    // Unused by now, and young.
    for (const { metadata } of jobs.slice(0, 2)) await space.client.delete(space.jobs(metadata.name));
    expect(jobs[0]?.metadata.name).to.equal(first.name);
    forward += 50 * minutes;
    await sweep();
    expect(await secrets()).to.have.length(2);

    forward += 15 * minutes;
    await sweep();
    expect(await secrets()).to.deep.equal([encoded('second')]);

    // What is removed is made again when it is wanted.
    await submit('first');
    expect(await secrets()).to.have.length(2);
  });
});

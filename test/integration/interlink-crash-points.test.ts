import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { podOf } from '../support/interlink-client.ts';
import { dataRoot, interlinkSite, untilListening } from '../support/interlink-site.ts';
import type { Site } from '../support/site.ts';
import { toySteps } from '../support/toy-site.ts';
import { until } from '../support/until.ts';

/** A script that counts its starts, and goes on until the test lets it end. */
const script = 'echo start >> starts; until [ -e go ]; do sleep 0.05; done; exit 7';

describe('A26: a Pod of interLink has one job through SIGKILL', () => {
  let site: Site;
  const uid = randomUUID();
  const pod = podOf('crash', uid, script);
  const file = (name: string) => site.path(dataRoot, 'output', uid, name);

  afterEach(() => site.clean());

  const steps: readonly (readonly [description: string, step: string])[] = [
    ['before the Pod is written down', `before ${uid}.json "data"`],
    ['after the Pod is written down', `after ${uid}.json "data"`],
    ...toySteps,
  ];
  for (const [description, step] of steps)
    it(`${description}, when /create comes again`, async () => {
      site = interlinkSite();
      const crashing = site.startCrashingAt(step);
      const first = await untilListening(site, crashing);
      await first.create(pod).catch(() => undefined);
      expect(await crashing.ended, crashing.output()).to.equal('SIGKILL');

      const client = await untilListening(site, site.start());
      const created = await client.created(pod);
      expect(await client.created(pod)).to.deep.equal(created);
      await until('it runs', async () => (await client.state(pod)).running !== undefined);
      expect(await site.workers()).to.have.length(1);
      // The job is said to run before its container has begun.
      await until('its container has started', () => existsSync(file('starts')));
      await until('its start is written', () => readFileSync(file('starts'), 'utf8') !== '');
      expect(readFileSync(file('starts'), 'utf8')).to.equal('start\n');
    });

  it('after its end, before that is written down', async () => {
    site = interlinkSite();
    const crashing = site.startCrashingAt(`before ${uid}.json "end"`);
    const first = await untilListening(site, crashing);
    await first.created(pod);
    await until('it runs', () => existsSync(file('starts')));
    writeFileSync(file('go'), '');
    expect(await crashing.ended, crashing.output()).to.equal('SIGKILL');

    const client = await untilListening(site, site.start());
    const ended = await until('it has ended', async () => (await client.state(pod)).terminated);
    expect(ended.exitCode).to.equal(7);
    expect(readFileSync(file('starts'), 'utf8')).to.equal('start\n');
  });

  it('after /delete was written down, without another /delete', async () => {
    site = interlinkSite();
    const crashing = site.startCrashingAt(`after ${uid}.json "deleted"`);
    const first = await untilListening(site, crashing);
    await first.created(pod);
    await until('it runs', () => existsSync(file('starts')));
    await first.remove(pod).catch(() => undefined);
    expect(await crashing.ended, crashing.output()).to.equal('SIGKILL');

    const client = await untilListening(site, site.start());
    await until('its job is gone', () => site.liveProcesses() === 0);
    await until('its files are gone', () => readdirSync(site.path(dataRoot, 'pods')).length === 0);
    expect(existsSync(site.path(dataRoot, 'output', uid))).to.equal(false);
    // The virtual kubelet may still ask for a Pod whose job it knows: it ends, and does not succeed.
    pod.metadata.annotations = { JobID: '1' };
    // The daemon forgets the Pod only after its file is gone.
    const ended = await until('it has ended', async () => (await client.state(pod)).terminated);
    expect(ended.exitCode).to.be.greaterThan(0);
  });
});

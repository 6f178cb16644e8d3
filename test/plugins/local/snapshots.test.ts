import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { expect } from 'chai';
import type { Worker } from '../../../src/plugins/contracts/index.ts';
import { LocalBackend } from '../../support/local-plugins.ts';
import { removeDirectory } from '../../support/temporary.ts';

describe('local workers that vanished with their directories', () => {
  const signal = new AbortController().signal;
  const { readdirSync } = fs;
  let backend: LocalBackend;
  let workers: Worker[];
  let readings: number;

  beforeEach(async () => {
    backend = new LocalBackend();
    workers = [];
    for (const id of [7, 8, 9]) workers.push(await backend.start(id));
    await backend.clean();
    for (const worker of workers) removeDirectory(backend.path(worker));
    readings = 0;
    fs.readdirSync = ((...args: Parameters<typeof readdirSync>) => {
      if (args[0] === '/proc') readings++;
      return readdirSync(...args);
    }) as typeof readdirSync;
    syncBuiltinESMExports();
  });

  afterEach(async () => {
    fs.readdirSync = readdirSync;
    syncBuiltinESMExports();
    await backend.clean();
  });

  it('cost one reading of /proc a look', async () => {
    await backend.host().lookAtLiving();
    expect(readings).to.equal(1);
  });

  it('cost one reading of /proc a check, and are forgotten with their slots', async () => {
    const results = await backend.monitor.check(workers, signal);
    expect([...results.values()]).to.deep.equal(workers.map(() => ({ kind: 'absent' })));
    expect(readings).to.equal(1);
    expect([...backend.host().live.keys()]).to.deep.equal([]);
    await backend.host().lookAtLiving();
    expect(readings).to.equal(1);
  });

  it('cost one reading of /proc where they are looked up to be fenced', async () => {
    const intents = workers.map((worker) => ({ ...worker, handle: { batchID: '' } }));
    const outcomes = await backend.restarted().submitter.find(intents, signal);
    expect([...outcomes.values()]).to.deep.equal(workers.map(() => ({ kind: 'absent' })));
    expect(readings).to.equal(1);
  });
});

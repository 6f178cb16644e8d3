import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../../src/util/clock.ts';
import { condorPool, type Pool } from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';

const { signal } = new AbortController();

describe('submit text that is rendered', () => {
  let pool: Pool;
  let backend: HTCondorBackend;

  before(async () => {
    pool = await condorPool();
  });
  beforeEach(() => {
    backend = new HTCondorBackend(pool, 'local');
  });
  afterEach(() => backend.clean());

  it('is the very text that condor_submit reads for the same worker', async () => {
    const tools = join(backend.directory, 'tools');
    const read = join(backend.directory, 'read.sub');
    mkdirSync(tools);
    writeFileSync(
      join(tools, 'condor_submit'),
      `#!/bin/sh\ntee ${read} | exec ${join(pool.programs, 'condor_submit')} "$@"\n`,
    );
    chmodSync(join(tools, 'condor_submit'), 0o755);
    const path = process.env['PATH'] ?? '';
    process.env['PATH'] = `${tools}${delimiter}${path}`;
    try {
      // Both texts name the directory of the hour: it must not end in between.
      const now = systemClock.now();
      const clock = { ...systemClock, now: () => now };
      const submitter = backend.submitter('true', backend.context({ clock }));
      const worker = backend.worker();
      const rendered = await submitter.render?.(worker);
      expect(rendered?.format).to.equal('sdf');
      const outcome = (await submitter.submit([worker], signal)).get(worker.workerId);
      expect(outcome?.kind, JSON.stringify(outcome)).to.equal('accepted');
      expect(readFileSync(read, 'utf8').trimEnd()).to.equal(String(rendered?.document).trimEnd());
      expect(rendered?.document).to.include(`out.${worker.workerId}`);
    } finally {
      process.env['PATH'] = path;
    }
  });
});

import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PoolClient } from '../../../src/clients/htcondor/pool-client.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('the limits that a negotiator counts', () => {
  it('hole 8: are those that are asked about, also where jobs name so many others that they take megabytes', async () => {
    const toolDirectory = temporaryDirectory();
    const tool = join(toolDirectory, 'condor_userprio');
    writeFileSync(
      tool,
      `#!/bin/sh
echo 'ConcurrencyLimit_Slate = 2.5'
awk 'BEGIN { for (i = 0; i < 50000; i++) print "ConcurrencyLimit_a_name_of_its_own_" i " = 1.0" }'
echo 'Other = 7'
printf 'ConcurrencyLimit_large_render = 3'
`,
    );
    chmodSync(tool, 0o755);
    const pool = new PoolClient({ place: { toolDirectory }, clock: systemClock, environment: process.env });
    const names = new Set(['slate', 'a_name_of_its_own_49999', 'large_render', 'unused']);
    const used = await pool.limitsInUse('n', names, new AbortController().signal);
    // The last one is a line without an end.
    expect([...used]).to.deep.equal([
      ['slate', 2.5],
      ['a_name_of_its_own_49999', 1],
      ['large_render', 3],
    ]);
  });
});

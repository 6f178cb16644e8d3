import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { HTCondorClient } from '../../../src/clients/htcondor/client.ts';
import { PoolClient } from '../../../src/clients/htcondor/pool-client.ts';
import { Kept, mostKept } from '../../../src/clients/htcondor/tools.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { rejection } from '../../support/kubernetes-client.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const { signal } = new AbortController();

describe('what is kept of an answer of HTCondor', () => {
  /** Commands that answer with more ads than are kept. */
  function endless() {
    const toolDirectory = temporaryDirectory();
    const list = `echo '['; yes '{"ClusterId":1,"ProcId":0},' | head -n ${mostKept.ads + 1000}; echo '{}]'`;
    for (const command of ['condor_q', 'condor_status', 'condor_history']) {
      writeFileSync(join(toolDirectory, command), `#!/bin/sh\n${list}\n`);
      chmodSync(join(toolDirectory, command), 0o755);
    }
    return { place: { toolDirectory }, clock: systemClock, environment: process.env };
  }

  it('hole 8: ends with a million ads, whoever answers, and says what would be right', async () => {
    const options = endless();
    const one = () => 1;
    const asked = [
      new HTCondorClient(options).queueAs(one, 'true', ['ClusterId'], signal),
      new HTCondorClient(options).historyAs(one, 'true', ['ClusterId'], 10, signal),
      new PoolClient(options).ads('slots', { attributes: [] }, one, signal),
    ];
    for (const error of await Promise.all(asked.map(rejection))) {
      expect(error).to.have.property('code', 'condor-answer');
      expect(error)
        .to.have.property('message')
        .that.matches(/^condor_\w+ for .* answers with more than .* 1000000 ads/);
      expect(error).to.have.property('message').that.contains('Right is less');
    }
  });

  it('hole 8: does not end with those of which nothing is kept', async () => {
    const client = new HTCondorClient(endless());
    const read = ({ ClusterId }: { readonly ClusterId?: unknown }) => (ClusterId === 1 ? undefined : 'last');
    expect(await client.queueAs(read, 'true', ['A'], signal)).to.deep.equal(['last']);
  });

  it('hole 8: ends with so many characters, wherever in it they are', () => {
    const text = 'x'.repeat(mostKept.characters / 16);
    for (const one of [text, { text }, new Map([['text', text]]), [{ list: [text] }]]) {
      const kept = new Kept<unknown>();
      for (let at = 0; at < 15; at++) kept.add(one);
      expect(kept.all).to.have.length(15);
      expect(() => {
        kept.add(one);
      }).to.throw(`${mostKept.characters} characters`);
    }
  });
});

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
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

describe('a schedd that is called by another name', () => {
  it('is asked and told by that one from then on, and given jobs by its own alone', async () => {
    const toolDirectory = temporaryDirectory();
    const called = join(toolDirectory, 'called');
    const answers = { condor_q: "echo '[]'", condor_submit: "cat > /dev/null; echo '7.0 - 7.0'" };
    for (const [command, answer] of Object.entries(answers)) {
      writeFileSync(
        join(toolDirectory, command),
        `#!/bin/sh\necho "${command} $*" >> ${called}\n${answer}\n`,
      );
      chmodSync(join(toolDirectory, command), 0o755);
    }
    const place = { name: 'old@a', pool: 'pool.test', toolDirectory };
    const client = new HTCondorClient({ place, clock: systemClock, environment: process.env });
    client.callAt({ name: 'new@b' });
    await client.queue('true', ['ClusterId'], signal);
    await client.submit('queue', {}, signal);
    client.callAt(place);
    await client.queue('true', ['ClusterId'], signal);
    const names = readFileSync(called, 'utf8')
      .trim()
      .split('\n')
      .map((line) => [line.split(' ')[0], /-name (\S+)(?: -pool (\S+))?/.exec(line)?.slice(1)]);
    expect(names).to.deep.equal([
      ['condor_q', ['new@b', undefined]],
      ['condor_submit', ['old@a', 'pool.test']],
      ['condor_q', ['old@a', 'pool.test']],
    ]);
  });
});

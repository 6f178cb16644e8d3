import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { saveMemory } from '../../../src/daemon/supervision/memory.ts';
import { type FactoryEvents, factoryEvents } from '../../../src/agents/events.ts';
import type { Events } from '../../../src/util/events.ts';
import { recordingLog } from '../../support/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const module = resolve(import.meta.dirname, '../../../src/daemon/supervision/memory.ts');

/** As a daemon that listed many workers: most of what it read is of no use a moment later. */
const program = `
import { saveMemory } from ${JSON.stringify(module)};
let kept = [];
for (let round = 0; round < 6; round++) {
  kept = Array.from({ length: 80_000 }, (_, n) => JSON.parse('{"n":' + n + ',"text":"' + 'x'.repeat(200) + '","deep":[1,{"n":2}]}'));
  await new Promise((done) => setImmediate(done));
}
kept.length = 1000;
const before = process.memoryUsage.rss();
saveMemory({ heard: true, events: { on: (event, tell) => tell() } }, { monotonic: () => 0 });
process.stdout.write(JSON.stringify({ before, after: process.memoryUsage.rss(), kept: kept.length, gc: typeof globalThis.gc }));
`;

describe('the memory of a daemon', () => {
  let clock: ManualClock;
  let daemon: { heard: boolean; events: Events<FactoryEvents> };
  let saved: number;

  beforeEach(() => {
    clock = new ManualClock();
    saved = 0;
    daemon = { heard: false, events: factoryEvents(recordingLog()) };
    saveMemory(daemon, clock, () => saved++);
  });

  const pass = () => {
    daemon.events.emit('passEnded', { loop: 'x', duration: 1, failed: false });
  };

  it('is saved once, when all connections were heard of', () => {
    pass();
    expect(saved).to.equal(0);
    daemon.heard = true;
    pass();
    pass();
    expect(saved).to.equal(1);
  });

  it('is saved after two minutes where a connection is not heard of', async () => {
    await clock.advance(119_000);
    pass();
    expect(saved).to.equal(0);
    await clock.advance(2000);
    pass();
    expect(saved).to.equal(1);
  });

  it('is saved again when connections that came later were heard of', () => {
    daemon.heard = true;
    pass();
    daemon.heard = false;
    pass();
    expect(saved).to.equal(1);
    daemon.heard = true;
    pass();
    pass();
    expect(saved).to.equal(2);
  });

  it('is given back to the system', async () => {
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args);
    const { before, after, kept, gc } = JSON.parse(stdout) as Record<string, unknown>;
    expect(stderr).to.equal('');
    expect({ kept, gc }).to.deep.equal({ kept: 1000, gc: 'undefined' });
    expect(after).to.be.lessThan(Number(before) - 50e6);
  });
});

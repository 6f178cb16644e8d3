import { mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { LocalHost } from '../../../src/plugins/local/host.ts';
import { LocalLogs } from '../../../src/plugins/local/logs.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('the log of a local worker', () => {
  it('is closed once its disk answers again, and its reader does not wait for that', async () => {
    const directory = temporaryDirectory();
    const file = join(directory, '7', 'stdout');
    mkdirSync(join(directory, '7'));
    writeFileSync(file, 'said\n');
    const clock = new ManualClock();
    const context = pluginContext({ clock, stateDir: directory });
    const host = new LocalHost(directory, context);
    const logs = new LocalLogs(host, clock, context.log);
    const request = { stream: 'stdout', follow: false } as const;
    const pieces = logs.read(workerOf(7), request, new AbortController().signal)[Symbol.asyncIterator]();
    await pieces.next();
    expect(isOpen(file)).to.equal(true);

    const disk = Promise.withResolvers<undefined>();
    const hanging = [1, 2].map(() => host.lane.run('hangs', () => disk.promise).catch(() => undefined));
    const returned = pieces.return?.();
    for (let n = 0; n < 3; n++) await clock.advance(10_001);
    await returned;
    await Promise.all(hanging);
    expect(isOpen(file)).to.equal(true);
    disk.resolve(undefined);
    await until('it is closed', () => !isOpen(file));
  });
});

function isOpen(file: string): boolean {
  return readdirSync('/proc/self/fd').some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file;
    } catch {
      // The one by which this directory is read.
      return false;
    }
  });
}

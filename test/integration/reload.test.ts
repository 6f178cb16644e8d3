import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { countStarts, Site, untilSaid } from '../support/site.ts';
import { until } from '../support/until.ts';

/** Looks at the file all the time: a change is taken up as soon as it stayed for half a second. */
const watching = { qconf: { checkInterval: 0.1 } };
const limit = (workers: number) => ({ maxWorkers: workers, nQueueLimitWorker: workers });

async function untilAlive(site: Site, queue: string, workers: number): Promise<void> {
  await until(`${queue} has ${workers} living workers`, async () => {
    const { counts } = await site.queue(queue);
    return (counts.submitted ?? 0) + (counts.running ?? 0) === workers;
  });
}

async function reasonsOf(site: Site, queue: string): Promise<string[]> {
  return (await site.queue(queue)).reasons.map(({ code }) => code);
}

describe('a changed queue file', () => {
  it('is taken up by itself: new limits, a new queue, and one that is gone, whose workers live on', async () => {
    const site = new Site({ settings: watching, queues: { A: limit(1), B: limit(1) } });
    try {
      const daemon = site.start();
      await untilAlive(site, 'A', 1);
      await untilAlive(site, 'B', 1);
      const [first] = await site.workers({ queue: 'A' });
      site.writeQueues({ A: limit(3), C: limit(1) });
      await untilAlive(site, 'A', 3);
      await untilAlive(site, 'C', 1);
      expect((await site.workers({ queue: 'A' })).map(({ workerID }) => workerID)).to.include(
        first?.workerID,
      );
      await until('B is removed', async () => (await reasonsOf(site, 'B')).includes('queue-removed'));
      // The worker of the removed queue is followed to its end.
      const [gone] = await site.workers({ queue: 'B' });
      await site.run('kill', String(gone?.workerID));
      await until(
        'its end is seen',
        async () => (await site.workers({ queue: 'B' }))[0]?.status === 'cancelled',
      );
      // And back again, with what is left of the rest.
      site.writeQueues({ A: limit(3), B: limit(2), C: { ...limit(1), queueStatus: 'offline' } });
      await untilAlive(site, 'B', 2);
      await until('C is offline', async () => (await reasonsOf(site, 'C')).includes('queue-status'));
      expect((await site.workers({ queue: 'A' })).length).to.equal(3);
      expect(daemon.output()).not.to.match(/ERROR/);
    } finally {
      await site.clean();
    }
  });

  it('is read on SIGHUP, also where nobody looks at it', async () => {
    const site = new Site({ settings: { qconf: { checkInterval: 0 } }, queues: { Q: limit(1) } });
    try {
      const daemon = site.start();
      await untilAlive(site, 'Q', 1);
      site.writeQueues({ Q: limit(2) });
      daemon.process.kill('SIGHUP');
      await untilAlive(site, 'Q', 2);
      await untilSaid(daemon, /INFO {2}the queue file was read again cause=SIGHUP queues=1/);
    } finally {
      await site.clean();
    }
  });

  it('changes nothing while it is broken, says so, and counts as soon as it is whole', async () => {
    const site = new Site({
      settings: watching,
      pilot: `${countStarts} exec sleep 1000`,
      queues: { Q: limit(1) },
    });
    try {
      const daemon = site.start();
      await untilAlive(site, 'Q', 1);
      site.writeQueues({ Q: limit(2) });
      const whole = readFileSync(site.queueFile, 'utf8');
      writeFileSync(site.queueFile, whole.slice(0, whole.length / 2));
      const note = await until('the queue says so', async () =>
        (await site.queue('Q')).reasons.find(({ code }) => code === 'reload-refused'),
      );
      expect(note.message).to.match(
        /^the changed queue file is not used: \S+panda_queueconfig\.json:\d+( \/\S+)?: not valid JSON: /,
      );
      expect((await site.queue('Q')).state).to.equal('running');
      await untilSaid(daemon, 'the queue file cannot be used: all queues go on as they were');
      writeFileSync(site.queueFile, whole);
      await untilAlive(site, 'Q', 2);
      await until(
        'nothing is said any more',
        async () => !(await reasonsOf(site, 'Q')).includes('reload-refused'),
      );
      // A worker is alive before its pilot writes anything.
      await until('both pilots have begun', () => site.starts().size === 2);
      expect([...site.starts().values()]).to.deep.equal([1, 1]);
    } finally {
      await site.clean();
    }
  });

  it('is not read while it is being written', async () => {
    const site = new Site({ settings: watching, queues: { Q: limit(1) } });
    try {
      const daemon = site.start();
      await untilAlive(site, 'Q', 1);
      site.writeQueues({ Q: limit(2), R: limit(1) });
      const whole = readFileSync(site.queueFile, 'utf8');
      // An editor or a copy over the network: a piece now and then, never the same for half a second. A busy machine may hold up this
      // test itself for so long: then thresher is right to read, and the file is written once more.
      const writeInPieces = async () => {
        let longest = 0;
        for (let end = 40; end < whole.length; end += 40) {
          const began = performance.now();
          writeFileSync(site.queueFile, whole.slice(0, end));
          await sleep(100);
          longest = Math.max(longest, performance.now() - began);
        }
        writeFileSync(site.queueFile, whole);
        return longest;
      };
      let before = 0;
      await until('the file was written without a long pause', async () => {
        before = daemon.output().length;
        return (await writeInPieces()) <= 300;
      });
      await untilAlive(site, 'R', 1);
      expect(daemon.output().slice(before)).not.to.contain('cannot be used');
    } finally {
      await site.clean();
    }
  });

  it('leaves a queue alone that has a mistake now, and takes up the others', async () => {
    const site = new Site({ settings: watching, queues: { A: limit(1), B: limit(1) } });
    try {
      site.start();
      await untilAlive(site, 'A', 1);
      site.writeQueues({ A: { ...limit(5), maxWorkers: '5' }, B: limit(2) });
      await untilAlive(site, 'B', 2);
      const { state, reasons, limits } = await until('A says so', async () => {
        const view = await site.queue('A');
        return view.reasons.some(({ code }) => code === 'reload-refused') && view;
      });
      expect(state).to.equal('running');
      expect(limits.maxWorkers).to.equal(1);
      expect(reasons.map(({ message }) => message).join()).to.match(
        /the changed configuration of the queue is not used: \S+panda_queueconfig\.json:\d+ \/\w+\/maxWorkers: maxWorkers is "5"; it must be an integer: write 5 without quotes/,
      );
      site.writeQueues({ A: limit(3), B: limit(2) });
      await untilAlive(site, 'A', 3);
    } finally {
      await site.clean();
    }
  });

  it('may be a symbolic link in a directory that is swapped, as Kubernetes does with ConfigMaps', async () => {
    const site = new Site({
      settings: { qconf: { checkInterval: 0.1, configFile: 'mounted/panda_queueconfig.json' } },
      queues: { Q: limit(1) },
    });
    const publish = (version: string, queues: Record<string, Record<string, unknown>>) => {
      site.writeQueues(queues);
      const at = site.path('mounted', version);
      mkdirSync(at, { recursive: true });
      renameSync(site.queueFile, join(at, 'panda_queueconfig.json'));
      writeFileSync(join(at, 'pilot.yaml'), readFileSync(site.path('pilot.yaml')));
      symlinkSync(version, site.path('mounted', '..data_tmp'));
      renameSync(site.path('mounted', '..data_tmp'), site.path('mounted', '..data'));
    };
    try {
      publish('..2026_01', { Q: limit(1) });
      for (const name of ['panda_queueconfig.json', 'pilot.yaml'])
        symlinkSync(join('..data', name), site.path('mounted', name));
      const daemon = site.start();
      await untilAlive(site, 'Q', 1);
      publish('..2026_02', { Q: limit(2) });
      await untilAlive(site, 'Q', 2);
      expect(daemon.output()).not.to.match(/ERROR/);
    } finally {
      await site.clean();
    }
  });

  it('may say otherwise how a connection is watched: its workers are followed all the same', async () => {
    const site = new Site({ settings: watching, pilot: 'sleep 3', queues: { Q: limit(2) } });
    const module = 'thresher/local';
    try {
      const daemon = site.start();
      await untilAlive(site, 'Q', 2);
      const before = (await site.workers()).map(({ workerID }) => workerID);
      site.writeQueues({ Q: { ...limit(2), monitor: { name: 'LocalMonitor', module, pollInterval: 0.2 } } });
      await until('it was read', () => daemon.output().includes('the queue file was read again'));
      await until('the ends of earlier workers are seen', async () => {
        const workers = await site.workers({ status: 'finished' });
        return before.every((id) => workers.some(({ workerID }) => workerID === id));
      });
      await until('others follow', async () => (await site.workers()).length > before.length);
      await until(
        'nothing is an orphan',
        async () => (await site.run('orphans')).stdout.trim().split('\n').length === 1,
      );
    } finally {
      await site.clean();
    }
  });

  it('may change again and again under load: no limit is exceeded, no worker doubled or forgotten', async () => {
    const most = 4;
    const site = new Site({
      pilot: `${countStarts} sleep 0.2`,
      settings: { qconf: { checkInterval: 0 }, submitter: { sleepTime: 0.05 } },
      queues: { Q: limit(most) },
    });
    const watch = new AbortController();
    let seen = 0;
    const watched = (async () => {
      while (!watch.signal.aborted) {
        seen = Math.max(seen, site.liveShims().size);
        // Far less than a pilot lives; a look reads all processes of the machine.
        await sleep(30);
      }
    })();
    try {
      const daemon = site.start();
      await untilAlive(site, 'Q', most);
      for (let round = 1; round <= 30; round++) {
        site.writeQueues({ Q: { ...limit(1 + (round % most)), maxNewWorkersPerCycle: round } });
        daemon.process.kill('SIGHUP');
        await sleep(60);
      }
      const before = await until('it can be asked', async () => (await site.workers()).length);
      await until('it goes on after all of this', async () => (await site.workers()).length > before + 10);
      site.writeQueues({ Q: { ...limit(most), queueStatus: 'offline' } });
      daemon.process.kill('SIGHUP');
      await until('all have ended', async () =>
        (await site.workers()).every(({ status }) => ['finished', 'missed'].includes(status)),
      );
      const workers = await site.workers();
      const missed = workers.filter(({ status }) => status === 'missed');
      expect(missed).to.deep.equal([]);
      expect([...site.starts().values()].every((count) => count === 1)).to.equal(true);
      expect(new Set(site.starts().keys())).to.deep.equal(new Set(workers.map(({ workerID }) => workerID)));
      expect(seen).to.be.within(1, most);
    } finally {
      watch.abort();
      await watched;
      await site.clean();
    }
  });

  it('that changes how a connection is watched counts what its workers take as before', async () => {
    const module = 'thresher/local';
    const queue = (pollInterval: number) => ({
      ...limit(50),
      submitter: { name: 'LocalSubmitter', module, templateFile: 'whole-core.yaml', maxSlots: 2 },
      monitor: { name: 'LocalMonitor', module, pollInterval },
    });
    const site = new Site({ settings: watching, queues: { Q: queue(0.1) } });
    writeFileSync(site.path('whole-core.yaml'), 'command: sleep\nargs: ["1000"]\n');
    try {
      const daemon = site.start();
      await untilAlive(site, 'Q', 2);
      for (let round = 1; round <= 3; round++) {
        site.writeQueues({ Q: queue(0.1 + round / 100) });
        await until(`reload ${round}`, () => daemon.output().split('was read again').length > round);
        await until('it looked again', async () => (await reasonsOf(site, 'Q')).includes('backend-room'));
        expect(site.liveShims().size).to.equal(2);
      }
    } finally {
      await site.clean();
    }
  });

  it('may change twice during one pass: nobody submits beside it', async () => {
    const module = join(import.meta.dirname, '../support/plugins/slow-throttler.ts');
    const queue = (cycle: number) => ({
      ...limit(2),
      maxNewWorkersPerCycle: cycle,
      throttler: { name: 'SlowThrottler', module, seconds: 1 },
    });
    const site = new Site({ settings: { qconf: { checkInterval: 0 } }, queues: { Q: queue(5) } });
    try {
      const daemon = site.start();
      await until('the first pass is under way', () => daemon.output().includes('started'));
      for (const cycle of [6, 7]) {
        site.writeQueues({ Q: queue(cycle) });
        daemon.process.kill('SIGHUP');
        await until(`reload ${cycle}`, () => daemon.output().split('was read again').length > cycle - 5);
      }
      await untilAlive(site, 'Q', 2);
      await until('another pass was made', async () => (await reasonsOf(site, 'Q')).includes('max-workers'));
      expect(site.liveShims().size).to.equal(2);
    } finally {
      await site.clean();
    }
  });
});

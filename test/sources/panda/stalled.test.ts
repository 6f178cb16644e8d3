import { expect } from 'chai';
import type { Desk } from '../../../src/plugins/contracts/index.ts';
import type { PandaLinkStatus } from '../../../src/plugins/contracts/panda-status.ts';
import { makeLink } from '../../../src/sources/panda/make-link.ts';
import { LinkMemory } from '../../../src/sources/panda/memory.ts';
import { linkOptions } from '../../../src/sources/panda/options.ts';
import type { StatusFile } from '../../../src/sources/panda/status-file.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { memoryFor } from '../../support/source-memory.ts';

describe('the shown state of the link', () => {
  it('has the answers before a call on which the server stalls', async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const ok = { kind: 'ok', data: null } as const;
    let shown: Pick<PandaLinkStatus, 'lastAnswers' | 'starting'> | undefined;
    const status: Pick<StatusFile, 'write'> = {
      write: async (read) => {
        shown = read();
      },
    };
    const stalls = () =>
      new Promise<never>((_, reject) => {
        stop.signal.addEventListener('abort', () => {
          reject(new Error('stopped'));
        });
      });
    const memory = new LinkMemory(memoryFor());
    const link = makeLink({
      api: {
        heartbeat: async () => ok,
        currentWorkerId: async () => ({ kind: 'ok', data: 0 }),
        resourceTypes: async () => ({ kind: 'ok', data: [] }),
        activeJobs: async () => ({ kind: 'ok', data: {} }),
        workerStatistics: async () => ({ kind: 'ok', data: {} }),
        updateWorkers: async () => ({ kind: 'ok', data: [] }),
        acquireCommands: stalls,
        acknowledge: async () => ok,
        reportStatistics: async () => ok,
      },
      memory,
      status: status as StatusFile,
      serverAhead: () => ({ ahead: 0, within: 1000 }),
      options: linkOptions({ heartbeatInterval: 600, statisticsInterval: 300, jobsInterval: 60 }),
      clock,
      log: recordingLog(),
      harvesterId: 'h',
      url: 'https://simulated',
      version: '1',
      host: 'here',
    });
    const desk = {
      ownQueues: () => [{ name: 'Q', mapType: 'NoJob', runMode: 'slave' }],
      wake: () => undefined,
      living: async () => [],
      census: async () => ({ at: 0, upTo: 0, living: [] }),
      keepIdsAbove: async () => undefined,
    } as unknown as Desk;
    const life = link.run(desk, stop.signal).catch(() => undefined);
    await clock.settle();
    expect(shown?.starting).to.equal(undefined);
    expect(Object.keys(shown?.lastAnswers ?? {})).to.include.members([
      'heartbeat',
      'worker-id',
      'statistics',
    ]);
    stop.abort();
    await life;
  });
});

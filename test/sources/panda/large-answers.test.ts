import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { PandaApi } from '../../../src/clients/panda/api.ts';
import { PandaClient } from '../../../src/clients/panda/client.ts';
import type { PandaLogin } from '../../../src/clients/panda/login.ts';
import { outcomeOf, type PandaOutcome, usualBounds } from '../../../src/clients/panda/outcome.ts';
import type { Desk, WorkerNews } from '../../../src/plugins/contracts/index.ts';
import { CommandRunner } from '../../../src/sources/panda/command-runner.ts';
import { ActiveJobs } from '../../../src/sources/panda/jobs.ts';
import { LinkMemory } from '../../../src/sources/panda/memory.ts';
import { OrderBook } from '../../../src/sources/panda/order-book.ts';
import { ServerHealth } from '../../../src/sources/panda/server-health.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { ownQueue, recordingLog, requirements } from '../../support/samples.ts';
import { memoryFor } from '../../support/source-memory.ts';

const { signal } = new AbortController();
const megabyte = 1024 * 1024;

/** As many of these pieces, with a comma between them, as a text of this length has. The piece gets its number. */
function many(piece: (at: number) => string, bytes: number): string {
  const pieces: string[] = [];
  const perPiece = 1 + (piece(0).match(/[,[{]/g) ?? []).length;
  for (let length = 0, at = 0; length < bytes - 100 && (at + 30) * perPiece < usualBounds.values; at++) {
    const next = piece(at);
    pieces.push(next);
    length += next.length + 1;
  }
  return pieces.join(',');
}

/** Answers that are as large as they may be, and have the most mistakes or the most work. */
const forms: Readonly<Record<string, (bytes: number) => string>> = {
  numbers: (bytes) => `[${many(() => '1', bytes)}]`,
  'empty objects': (bytes) => `[${many(() => '{}', bytes)}]`,
  'sites without a number': (bytes) => `{${many((at) => `"S${at}":{"activated":"x"}`, bytes)}}`,
  'sites that are numbers': (bytes) => `{${many((at) => `"S${at}":1`, bytes)}}`,
  'types without bounds': (bytes) => `[${many((at) => `{"resource_name":"T${at}"}`, bytes)}]`,
  'lists in lists': (bytes) =>
    '['.repeat(usualBounds.values - 10) + ']'.repeat(Math.min(usualBounds.values - 10, bytes)),
  'one text': (bytes) => `"${'x'.repeat(bytes)}"`,
  commands: (bytes) => `[${many((at) => `{"command_id":${at + 1},"command":"DANCE","params":0}`, bytes)}]`,
};

const commands: Readonly<Record<string, (bytes: number) => string>> = {
  'a name without end': (bytes) => `{"command_id":1,"command":"${'D'.repeat(bytes)}"}`,
  'an order of thousands of types': (bytes) =>
    `{"command_id":1,"command":"SET_N_WORKERS_JOBTYPE:S","params":{"managed":{${many((at) => `"T${at}":1000000`, bytes)}}}}`,
  'an order of a thousand types': () =>
    `{"command_id":1,"command":"SET_N_WORKERS_JOBTYPE:S","params":{"managed":{${many((at) => `"T${at}":1000000`, 13_000)}}}}`,
  'a kill of sites without end': (bytes) =>
    `{"command_id":1,"command":"KILL_WORKERS","params":{"status":"ALL","computingElement":"ALL","submissionHost":"ALL","computingSite":[${many((at) => `"S${at}x"`, bytes)}]}}`,
  'ids without end': (bytes) =>
    `{"command_id":1,"command":"SYNC_WORKERS_KILL","params":[${many((at) => `"${at + 1e6}"`, bytes)}]}`,
  'parameters as a text of lists in lists': (bytes) =>
    `{"command_id":1,"command":"KILL_WORKERS","params":"${'['.repeat(20_000)}${']'.repeat(Math.min(20_000, bytes))}"}`,
  'unknown parameters': (bytes) =>
    `{"command_id":1,"command":"DANCE","params":{"a":[${many(() => '1', bytes)}]}}`,
};

describe('hole 8: answers of the PanDA server that are as large as they may be', function () {
  this.timeout(60_000);

  /** Processor time of the longest piece of work in which nothing else could run, ms. A machine that is busy elsewhere adds none. */
  async function longestPiece(work: () => Promise<unknown>): Promise<number> {
    let longest = 0;
    let last = process.threadCpuUsage();
    let isOver = false;
    const look = () => {
      const { user, system } = process.threadCpuUsage(last);
      longest = Math.max(longest, (user + system) / 1000);
      last = process.threadCpuUsage();
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    await work();
    isOver = true;
    look();
    return longest;
  }

  const answer = (data: string) => `{"success":true,"message":"","data":${data}}`;
  const apiFor = (text: string) => {
    const call = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return outcomeOf({ status: 200, body: answer(text) });
    };
    return new PandaApi({ call }, 'h');
  };
  const calls: Readonly<Record<string, (api: PandaApi) => Promise<PandaOutcome<unknown>>>> = {
    acquire_commands: (api) => api.acquireCommands(20, signal),
    get_resource_types: (api) => api.resourceTypes(signal),
    active_job_stats_by_site: (api) => api.activeJobs(signal),
    get_current_worker_id: (api) => api.currentWorkerId(signal),
    update_workers: (api) => api.updateWorkers([{ workerID: 1, status: 'running' }], signal),
  };

  for (const [path, call] of Object.entries(calls))
    it(`hold nothing up for 100 ms: ${path}`, async () => {
      for (const [form, data] of Object.entries(forms)) {
        const api = apiFor(data(megabyte - 200));
        const clock = systemClock;
        const jobs = new ActiveJobs({
          api,
          clock,
          health: new ServerHealth({ clock, log: recordingLog() }),
          interval: 1,
        });
        const longest = await longestPiece(async () => {
          const outcome = await call(api);
          if (outcome.kind === 'failed') expect(outcome.message.length, form).to.be.lessThan(1000);
          if (path.startsWith('active')) {
            await jobs.turn(signal);
            expect(jobs.of('S0')?.activated).to.equal(undefined);
          }
        });
        expect(longest, form).to.be.lessThan(100);
      }
    });

  it('hold nothing up for 100 ms: what commands ask for, and the log has little of it', async () => {
    for (const [form, data] of Object.entries(commands)) {
      const text = `[${data(megabyte - 200)}]`;
      const log = recordingLog();
      const clock = systemClock;
      const memory = new LinkMemory(memoryFor());
      const orders = new OrderBook({ memory, clock, log });
      const runner = new CommandRunner({
        api: Object.assign(apiFor(text), { acknowledge: async () => ({ kind: 'ok', data: null }) }),
        memory,
        orders,
        statistician: { ask: () => undefined },
        reportAgain: async () => undefined,
        clock,
        log,
        health: new ServerHealth({ clock, log }),
        host: 'here',
        atOnce: 20,
      });
      const living = Array.from({ length: 10_000 }, (_, at) => ({
        queue: 'S',
        worker: { workerId: at + 1, status: 'running', computingSite: 'S' },
        origin: { uid: 'o', index: at },
      })) as unknown as readonly WorkerNews[];
      const desk = {
        ownQueues: () => [ownQueue('S', { runMode: 'slave' })],
        wake: () => undefined,
        living: async () => living,
        find: async () => [],
        madeSince: async () => [],
        end: async () => undefined,
      } as unknown as Desk;
      const longest = await longestPiece(async () => {
        await runner.poll(desk, signal);
        await new Promise((resolve) => setImmediate(resolve));
        orders.requestsOf('S', requirements, ['S']);
      });
      expect(longest, form).to.be.lessThan(100);
      expect(runner.shown, form).to.have.length(1);
      expect(JSON.stringify(log.lines).length, form).to.be.lessThan(2000);
      expect(JSON.stringify(runner.shown).length, form).to.be.lessThan(1000);
    }
  });

  it('are not read further than that', async () => {
    let sent = 0;
    const piece = Buffer.alloc(64 * 1024, '1,');
    const server = createServer((_, response) => {
      response.write('{"success":true,"message":"","data":[');
      const more = () => {
        while (sent < 100 * megabyte && !response.destroyed) {
          sent += piece.length;
          if (!response.write(piece)) {
            response.once('drain', more);
            return;
          }
        }
        response.end('1]}');
      };
      more();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const login = {
      current: async () => ({ fingerprint: 'x', tls: {}, headers: {} }),
      forget: () => undefined,
    } as unknown as PandaLogin;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = new PandaClient({ url, login, clock: systemClock, timeout: 30_000 });
    try {
      const outcome = await new PandaApi(client, 'h').acquireCommands(20, signal);
      expect(outcome).to.include({ kind: 'failed', code: 'panda-no-answer', maybeDone: true });
      expect(JSON.stringify(outcome)).to.include('acquire_commands is larger than 1048576 bytes');
      expect(sent).to.be.lessThan(50 * megabyte);
    } finally {
      await client.close();
      server.closeAllConnections();
      server.close();
    }
  });
});

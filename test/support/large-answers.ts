import { PandaApi } from '../../src/clients/panda/api.ts';
import { outcomeOf, type PandaOutcome, usualBounds } from '../../src/clients/panda/outcome.ts';
import type { Desk, Log, WorkerNews } from '../../src/plugins/contracts/index.ts';
import { CommandRunner } from '../../src/sources/panda/command-runner.ts';
import { LinkMemory } from '../../src/sources/panda/memory.ts';
import { OrderBook } from '../../src/sources/panda/order-book.ts';
import { ServerHealth } from '../../src/sources/panda/server-health.ts';
import { systemClock } from '../../src/util/clock.ts';
import { ownQueue } from './samples.ts';
import { memoryFor } from './source-memory.ts';

const { signal } = new AbortController();

/** Bytes of the largest answer whose `data` are read. */
export const largest = usualBounds.bytes - 200;

/** As many of these pieces, with a comma between them, as a text of this length has. The piece gets its number. */
export function many(piece: (at: number) => string, bytes: number): string {
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
export const largeAnswers: Readonly<Record<string, string>> = {
  numbers: `[${many(() => '1', largest)}]`,
  'empty objects': `[${many(() => '{}', largest)}]`,
  'sites without a number': `{${many((at) => `"S${at}":{"activated":"x"}`, largest)}}`,
  'sites that are numbers': `{${many((at) => `"S${at}":1`, largest)}}`,
  'types without bounds': `[${many((at) => `{"resource_name":"T${at}"}`, largest)}]`,
  'lists in lists': '['.repeat(usualBounds.values - 10) + ']'.repeat(usualBounds.values - 10),
  'one text': `"${'x'.repeat(largest)}"`,
  commands: `[${many((at) => `{"command_id":${at + 1},"command":"DANCE","params":0}`, largest)}]`,
};

const managed = (types: string) =>
  `{"command_id":1,"command":"SET_N_WORKERS_JOBTYPE:S","params":{"managed":{${types}}}}`;

/** Commands that ask for as much as they may. */
export const largeCommands: Readonly<Record<string, string>> = {
  'a name without end': `{"command_id":1,"command":"${'D'.repeat(largest)}"}`,
  'an order of thousands of types': managed(many((at) => `"T${at}":1000000`, largest)),
  'an order of a thousand types': managed(many((at) => `"T${at}":1000000`, 13_000)),
  'an order of one odd type for each of thousands of jobs': `{"command_id":1,"command":"SET_N_WORKERS_JOBTYPE:S","params":{${many((at) => `"J${at}":{"${'x-'.repeat(27)}":1}`, largest)}}}`,
  'an order of thousands of types that look like secrets': managed(
    many((at) => `"eyJaaaa${at}.bbbb.":1`, largest),
  ),
  'a kill of sites without end': `{"command_id":1,"command":"KILL_WORKERS","params":{"status":"ALL","computingElement":"ALL","submissionHost":"ALL","computingSite":[${many((at) => `"S${at}x"`, largest)}]}}`,
  'ids without end': `{"command_id":1,"command":"SYNC_WORKERS_KILL","params":[${many((at) => `"${at + 1e6}"`, largest)}]}`,
  'parameters as a text of lists in lists': `{"command_id":1,"command":"KILL_WORKERS","params":"${'['.repeat(20_000)}${']'.repeat(20_000)}"}`,
  'unknown parameters': `{"command_id":1,"command":"DANCE","params":{"a":[${many(() => '1', largest)}]}}`,
};

/** The calls whose answers a link reads. */
export const calls: Readonly<Record<string, (api: PandaApi) => Promise<PandaOutcome<unknown>>>> = {
  acquire_commands: (api) => api.acquireCommands(20, signal),
  get_resource_types: (api) => api.resourceTypes(signal),
  active_job_stats_by_site: (api) => api.activeJobs(signal),
  get_worker_statistics: (api) => api.workerStatistics(signal),
  get_current_worker_id: (api) => api.currentWorkerId(signal),
  update_workers: (api) => api.updateWorkers([{ workerID: 1, status: 'running' }], signal),
};

/** A server whose every answer has these data. */
export function answering(data: string): PandaApi {
  const body = `{"success":true,"message":"","data":${data}}`;
  const call = async () => {
    // An answer comes in a turn of its own.
    await new Promise((resolve) => setImmediate(resolve));
    return outcomeOf({ status: 200, body });
  };
  return new PandaApi({ call }, 'h');
}

/** What carries out the commands of such a server for the queue `S`, which has these workers. */
export function carryingOut(data: string, living: readonly WorkerNews[], log: Log) {
  const clock = systemClock;
  const memory = new LinkMemory(memoryFor());
  const orders = new OrderBook({ memory, clock, log, serverAhead: () => ({ ahead: 0, within: 1000 }) });
  const runner = new CommandRunner({
    api: Object.assign(answering(data), { acknowledge: async () => ({ kind: 'ok', data: null }) }),
    memory,
    orders,
    statistician: { ask: () => undefined },
    reportAgain: async () => undefined,
    clock,
    log,
    health: new ServerHealth({ clock, log }),
    host: 'here',
    serverAhead: () => undefined,
    atOnce: 20,
  });
  const desk = {
    ownQueues: () => [ownQueue('S', { runMode: 'slave' })],
    wake: () => undefined,
    living: async () => living,
    find: async () => [],
    madeSince: async () => [],
    end: async () => undefined,
  } as unknown as Desk;
  return { runner, orders, desk };
}

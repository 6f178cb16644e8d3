import type { QueueRuntime } from '../../src/agents/queue-runtime.ts';
import type { QueueConfig } from '../../src/config/queues/queues.ts';
import type {
  CheckResult,
  FindOutcome,
  GoneOutcome,
  Preflight,
  SubmitOutcome,
  Wanted,
  Worker,
} from '../../src/plugins/contracts/index.ts';
import { payloadParts } from '../../src/worker/payload.ts';
import type { AgentParts } from './agent-context.ts';
import { configOf, requirements } from './samples.ts';

const idsOf = (workers: readonly Worker[]) => workers.map(({ workerId }) => workerId).join(' ');

/**
 * A queue whose plugins live in memory, do as a test says, and write down in one journal what was asked of them and what was
 * recorded, in its order. A `look` is one count of all limits: its throttler counts a family, and so is asked in each.
 */
export class ScriptedQueue {
  readonly journal: string[] = [];
  readonly runtime: QueueRuntime;
  demand: (signal: AbortSignal) => Promise<Omit<Wanted, 'requests'>>;
  preflight: (signal: AbortSignal) => Promise<Preflight> = async () => ({ problems: [] });
  submit: (worker: Worker) => SubmitOutcome | undefined = ({ workerId }) => ({
    kind: 'accepted',
    handle: { batchID: `b${workerId}` },
  });
  find: (worker: Worker) => FindOutcome | undefined = () => ({ kind: 'absent' });
  /** These run before the answer of the verb: a test may wait or throw in them. */
  duringSubmit: (signal: AbortSignal) => Promise<void> = async () => undefined;
  duringFind: (signal: AbortSignal) => Promise<void> = async () => undefined;
  duringKill: (signal: AbortSignal) => Promise<void> = async () => undefined;
  duringLook: () => Promise<void> = async () => undefined;

  constructor(
    parts: AgentParts,
    options: Readonly<Record<string, unknown>> = {},
    { name = 'Q', current = true } = {},
  ) {
    const { journal } = this;
    const config: QueueConfig = configOf(name, { maxWorkers: 2, nQueueLimitWorker: 2, ...options });
    this.demand = async () => ({ groups: [{ requirements, count: Infinity }], reasons: [] });
    const answer = <T>(workers: readonly Worker[], one: (worker: Worker) => T | undefined) =>
      new Map(
        workers.flatMap((worker): [number, T][] => {
          const value = one(worker);
          return value === undefined ? [] : [[worker.workerId, value]];
        }),
      );
    const gone = (workers: readonly Worker[]) => answer(workers, (): GoneOutcome => ({ kind: 'gone' }));
    this.runtime = {
      config,
      configId: 1,
      current,
      requirements,
      messenger: undefined,
      sources: [
        {
          kind: 'fill',
          own: true,
          options: {},
          source: {
            wanted: async (_, signal) => {
              journal.push('demand');
              return { requests: [], ...(await this.demand(signal)) };
            },
          },
        },
      ],
      payload: payloadParts,
      submitter: {
        preflight: (signal) => {
          journal.push('preflight');
          return this.preflight(signal);
        },
        submit: async (workers, signal) => {
          journal.push(`submit ${idsOf(workers)}`);
          await this.duringSubmit(signal);
          return answer(workers, this.submit);
        },
        find: async (workers, signal) => {
          journal.push(`find ${idsOf(workers)}`);
          await this.duringFind(signal);
          return answer(workers, this.find);
        },
      },
      throttler: {
        countsFamily: true,
        judge: async () => {
          journal.push('look');
          await this.duringLook();
          return undefined;
        },
      },
      connected: new Map([
        [
          parts.placement,
          {
            connection: parts.connection,
            monitor: {
              observe: () => new Promise(() => undefined),
              check: async (workers) => answer(workers, (): CheckResult => ({ kind: 'absent' })),
            },
            sweeper: {
              kill: async (workers, signal) => {
                journal.push(`kill ${idsOf(workers)}`);
                await this.duringKill(signal);
                return gone(workers);
              },
              remove: async (workers) => {
                journal.push(`remove ${idsOf(workers)}`);
                return gone(workers);
              },
              list: async () => [],
              removeOrphan: async () => ({ kind: 'gone' }),
            },
          },
        ],
      ]),
    };
    parts.events.on('workersChanged', ({ workers }) => {
      const made = workers.filter(({ from }) => from === undefined).map(({ workerId }) => workerId);
      if (made.length > 0) journal.push(`intend ${made.join(' ')}`);
      for (const { workerId, from, to } of workers) if (from !== undefined) journal.push(`${workerId} ${to}`);
    });
  }

  /** What was written down since the last call. */
  taken(): string[] {
    return this.journal.splice(0);
  }
}

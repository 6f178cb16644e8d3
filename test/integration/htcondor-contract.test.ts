import type { Submitter, SubmitOutcome } from '../../src/plugins/contracts/index.ts';
import { type BackendUnderTest, type Behaviour, describeBackendContract } from '../contract/suite.ts';
import {
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  forgetHistory,
  type Pool,
  type ScheddKind,
} from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';
import { until } from '../support/until.ts';

const scripts: Readonly<Record<Behaviour, string>> = {
  finishes: 'exit 0',
  fails: 'exit 3',
  runs: 'exec sleep 1000',
};

async function makeBackend(kind: ScheddKind): Promise<BackendUnderTest> {
  const pool = await condorPool();
  const backend = new HTCondorBackend(pool, kind);
  const others = condorSpace(pool);
  for (const [name, script] of Object.entries(scripts)) backend.template(`${name}.yaml`, script);
  const factory = (factoryId: string) => {
    const context = backend.context({ factoryId });
    const submitters = Object.keys(scripts).map((queue) => {
      const section = { templateFile: `${queue}.yaml`, logDir: 'logs' };
      return [queue, backend.plugin('submitter', { ...context, queue }, section)] as const;
    });
    return {
      submitter: byQueue(Object.fromEntries(submitters) as Record<Behaviour, Submitter>),
      monitor: backend.plugin('monitor', context, { pollInterval: 0.3 }),
      sweeper: backend.plugin('sweeper', context),
    };
  };
  const make = (space: CondorSpace) => factory(space.factory);
  return {
    ...make(backend.space),
    other: make(others),
    worker: (queue, of) => {
      const worker = backend.worker({ queue });
      return of === 'other' ? { ...worker, name: `${others.factory}-${worker.workerId}` } : worker;
    },
    restarted: () => make(backend.space),
    vanish: async ({ workerId }) => {
      await vanish(pool, kind, backend.space, workerId);
    },
    clean: () => backend.clean([others]),
  };
}

function byQueue(submitters: Readonly<Record<Behaviour, Submitter>>): Submitter {
  return {
    preflight: (signal) => submitters.runs.preflight(signal),
    find: (workers, signal) => submitters.runs.find(workers, signal),
    submit: async (workers, signal) => {
      const all = new Map<number, SubmitOutcome>();
      for (const [queue, some] of Map.groupBy(workers, (worker) => worker.queue as Behaviour)) {
        for (const [id, outcome] of await submitters[queue].submit(some, signal)) all.set(id, outcome);
      }
      return all;
    },
  };
}

/** Removes a job, and makes the history one of somebody else: as if it were rotated away. */
async function vanish(
  pool: Pool,
  kind: ScheddKind,
  { mine, factory }: CondorSpace,
  workerId: number,
): Promise<void> {
  const { signal } = new AbortController();
  const client = clientOf(pool, kind);
  const job = `${mine} && harvesterWorkerID == "${workerId}"`;
  await client.act('remove', job, 'vanished', signal);
  await until('it left the queue', async () => (await client.queue(job, ['ClusterId'], signal)).length === 0);
  forgetHistory(pool, kind, { factory });
}

describe('HTCondor', () => {
  describeBackendContract('a local schedd of HTCondor', () => makeBackend('local'));
  describeBackendContract('a remote schedd of HTCondor', () => makeBackend('remote'));
});

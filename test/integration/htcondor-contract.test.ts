import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Submitter } from '../../src/plugins/contracts/index.ts';
import {
  byQueue,
  type PayloadBackend,
  type PayloadQueue,
  payloadTemplates,
} from '../contract/payload-cases.ts';
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
import { readableByOthers } from '../support/readable-by-others.ts';
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

async function makeForPayloads(kind: ScheddKind): Promise<PayloadBackend> {
  const pool = await condorPool();
  const backend = new HTCondorBackend(pool, kind);
  const { directory, space } = backend;
  backend.letJobsReadPayloads();
  const lines: unknown[] = [];
  const say = (message: string, facts?: object) => void lines.push([message, facts]);
  const log = { debug: say, info: say, warn: say, error: say };
  const queues = Object.keys(payloadTemplates) as PayloadQueue[];
  for (const queue of queues) {
    const { script, args, env } = payloadTemplates[queue];
    backend.template(`${queue}.yaml`, script, {
      arguments: ['-c', script, 'pilot', ...args],
      environment: env,
    });
  }
  const make = () => {
    const context = backend.context({ log });
    const submitters = queues.map((queue) => {
      const section = { templateFile: `${queue}.yaml`, logDir: 'logs' };
      return [queue, backend.plugin('submitter', { ...context, queue }, section)] as const;
    });
    return {
      submitter: byQueue(Object.fromEntries(submitters) as Record<PayloadQueue, Submitter>),
      monitor: backend.plugin('monitor', context, { pollInterval: 0.3 }),
      sweeper: backend.plugin('sweeper', context),
    };
  };
  const { signal } = new AbortController();
  const client = clientOf(pool, kind);
  return {
    ...make(),
    worker: (queue) => backend.worker({ queue }),
    restarted: make,
    output: async ({ workerId }) => {
      const job = `${space.mine} && harvesterWorkerID == "${workerId}"`;
      if (kind === 'remote') await client.transferData(job, signal);
      return readFileSync(join(space.directory, `out.${workerId}`), 'utf8');
    },
    traces: async () => {
      const ads = [
        ...(await client.queue(space.mine, [], signal)),
        ...(await client.history(space.mine, [], 100, signal)),
      ];
      // Outputs are the workers' own words, and say what these saw.
      const spool = join(pool.directory, kind === 'local' ? 'spool' : 'spool-remote');
      const files = [...readableByOthers(directory), ...readableByOthers(spool, /history|job_queue/)];
      return JSON.stringify([lines, ads, files]);
    },
    clean: () => backend.clean(),
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
  describeBackendContract(
    'a local schedd of HTCondor',
    () => makeBackend('local'),
    () => makeForPayloads('local'),
  );
  describeBackendContract(
    'a remote schedd of HTCondor',
    () => makeBackend('remote'),
    () => makeForPayloads('remote'),
  );
});

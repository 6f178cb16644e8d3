import type { FastifyInstance } from 'fastify';
import type { Static } from 'typebox';
import { judgeHealth } from '../daemon/supervision/health.ts';
import { workerDetails, workerView } from '../daemon/view.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import Type from '../util/type.ts';
import { ThresherError } from '../worker/errors.ts';
import { parseStatuses } from '../worker/status.ts';
import { PandaAnswer } from './panda-schema.ts';
import {
  Failure,
  HealthAnswer,
  LogQuery,
  NoQuery,
  QueuesAnswer,
  ReadyAnswer,
  WorkerAnswer,
  WorkerParams,
  WorkersAnswer,
  WorkersQuery,
} from './schemas.ts';
import type { Served } from './served.ts';
import type { Shared } from './shared.ts';
import type { LoopHealth } from '../agents/loop.ts';

/** Most of a log that one answer holds, bytes, and how long its backend may take, ms. */
const log = { maxBytes: 1024 * 1024, timeout: 10_000 };

const plainText = (description: string) => ({
  description,
  content: { 'text/plain': { schema: Type.String() } },
});

/** Everything for programs. */
export function addApi(app: FastifyInstance, served: Served, { queues, tails }: Shared): void {
  addChecks(app, served);
  const { store } = served;
  const failures = { '4XX': Failure, '5XX': Failure };
  app.get(
    '/api/queues',
    {
      schema: {
        summary: 'All queues: counts, limits, and why no more workers are submitted',
        querystring: NoQuery,
        response: { 200: QueuesAnswer, ...failures },
      },
    },
    () => queues(),
  );
  app.get<{ Querystring: Static<typeof WorkersQuery> }>(
    '/api/workers',
    {
      schema: {
        summary: 'Workers, newest first',
        querystring: WorkersQuery,
        response: { 200: WorkersAnswer, ...failures },
      },
    },
    async ({ query: { queue, status, limit } }) => {
      const statuses = status === undefined ? undefined : parseStatuses(status);
      return (await store.workers.list({ queue, statuses, limit })).map(workerView);
    },
  );
  app.get<{ Params: Static<typeof WorkerParams> }>(
    '/api/workers/:id',
    {
      schema: {
        summary: 'All facts of a worker and its history',
        params: WorkerParams,
        querystring: NoQuery,
        response: { 200: WorkerAnswer, ...failures },
      },
    },
    async ({ params }) => workerDetails(store, await findWorker(store, params.id)),
  );
  app.get<{ Params: Static<typeof WorkerParams>; Querystring: Static<typeof LogQuery> }>(
    '/api/workers/:id/log',
    {
      schema: {
        summary:
          "The end of a worker's log; `thresher-log-cut: true` where lines were left out for their size",
        params: WorkerParams,
        querystring: LogQuery,
        response: { 200: plainText('The last lines, 1 MiB at most.'), ...failures },
      },
    },
    async ({ params, query: { stream, tail }, signal }, reply) => {
      const worker = await findWorker(store, params.id);
      const { bytes, cut } = await tails.read(worker, { stream, tail, ...log }, signal);
      if (cut) reply.header('thresher-log-cut', 'true');
      return reply.type('text/plain; charset=utf-8').send(bytes);
    },
  );
  app.get(
    '/api/panda',
    {
      schema: {
        summary: 'The link to the PanDA server: login, orders, commands, reports that wait, failures',
        querystring: NoQuery,
        response: { 200: PandaAnswer, ...failures },
      },
    },
    () => served.panda(),
  );
  app.get(
    '/api/openapi.json',
    {
      schema: {
        summary: 'This description',
        querystring: NoQuery,
        response: { 200: Type.Object({}, { description: 'OpenAPI 3.1.' }), ...failures },
      },
    },
    () => app.swagger(),
  );
}

/** For supervisors and Prometheus. */
function addChecks(app: FastifyInstance, served: Served): void {
  app.get(
    '/healthz',
    {
      config: { open: true },
      schema: {
        summary:
          'Whether the daemon gets on with its work; a backend that is down is no reason for a restart',
        response: { 200: HealthAnswer, 503: HealthAnswer },
      },
    },
    (_, reply) => {
      const { ok, stuck } = judgeHealth(served.health());
      const services = served.services().map(({ name, state }) => ({ name, state }));
      return reply.code(ok ? 200 : 503).send({ status: ok ? 'ok' : 'stuck', stuck, services });
    },
  );
  app.get(
    '/readyz',
    {
      schema: {
        summary: 'Whether the daemon works on all queues that it can work on',
        response: { 200: ReadyAnswer, 503: ReadyAnswer, '4XX': Failure },
      },
    },
    (_, reply) => {
      const { ready, waiting } = judgeReadiness(served.health());
      const stopping = served.stopping();
      const leader = served.leader();
      // It answers what the database knows: a service may lead readers there.
      if (leader !== undefined)
        return reply.code(200).send({ status: 'standby', leader: leader.holder, waiting: [] });
      const status = stopping ? 'stopping' : ready ? 'ready' : 'starting';
      return reply.code(status === 'ready' ? 200 : 503).send({ status, waiting });
    },
  );
  app.get(
    '/metrics',
    {
      schema: {
        summary: "All metrics, in Prometheus' text format 0.0.4",
        response: {
          200: plainText('See docs/http.md.'),
          '4XX': Failure,
          '5XX': Failure,
        },
      },
    },
    async (_, reply) => {
      const { metrics, store, factoryId, version } = served;
      const [health, credentials] = [served.health(), served.credentials()];
      const [services, waiting, gauges] = [served.services(), served.waiting(), served.gauges()];
      const leads = served.leader() === undefined;
      const sources = { store, factoryId, version, leads, health, credentials, services, waiting, gauges };
      const text = await metrics.text(sources);
      return reply.type('text/plain; version=0.0.4; charset=utf-8').send(text);
    },
  );
}

/** @throws ThresherError `no-such-worker` */
export async function findWorker(store: Store, id: string): Promise<WorkerRecord> {
  const record = await store.workers.byId(Number(id));
  if (record === undefined) throw new ThresherError('no-such-worker', `there is no worker ${id}`);
  return record;
}

interface Readiness {
  readonly ready: boolean;
  /** The connections whose first listing has not ended yet, well or badly. */
  readonly waiting: readonly string[];
}

const listing = 'list ';

/**
 * Ready is who works on all queues that can be worked on: every connection was listed once, or the attempt failed. A
 * backend that is down stops its own queues, which say so, and not the daemon; so it does not count here.
 */
function judgeReadiness(loops: readonly LoopHealth[]): Readiness {
  const started = loops.some(({ startedAt }) => startedAt !== undefined);
  const waiting = loops.flatMap(({ name, endedAt }) =>
    name.startsWith(listing) && endedAt === undefined ? [name.slice(listing.length)] : [],
  );
  return { ready: started && waiting.length === 0, waiting };
}

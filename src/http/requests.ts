import type { FastifyInstance } from 'fastify';
import type { Static } from 'typebox';
import { type RequestView, requestView, withoutDemand } from '../daemon/request-view.ts';
import { type QueueView, workerView } from '../daemon/view.ts';
import type { RequestInput } from '../daemon/new-request.ts';
import type { RequestRecord } from '../store/requests.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Reason } from '../worker/reason.ts';
import {
  Failure,
  NoQuery,
  RequestAnswer,
  RequestParams,
  RequestsAnswer,
  RequestsQuery,
  RequestToMake,
  RequestWithWorkersAnswer,
  WithdrawQuery,
} from './schemas.ts';
import type { Served } from './served.ts';
import type { Shared } from './shared.ts';

/** A payload has 1 MiB at most, which base64 makes a third longer, bytes. */
const longestBody = 2 * 1024 * 1024;
/** Workers of one answer. */
const shownWorkers = 1000;

interface Shown extends RequestView {
  readonly reasons: readonly Reason[];
}

/** Requests for workers: the only routes that change something. */
export function addRequests(app: FastifyInstance, served: Served, { queues }: Shared): void {
  const { store, requests } = served;
  const failures = { '4XX': Failure, '5XX': Failure };
  const found = async (id: string): Promise<Shown> => shown(await findRequest(served, id), await queues());
  app.post<{ Body: Static<typeof RequestToMake> }>(
    '/api/requests',
    {
      bodyLimit: longestBody,
      config: { writes: true },
      schema: {
        summary:
          'Ask for workers of a queue; a repeated request with the same `Idempotency-Key` is answered with the first one (200)',
        querystring: NoQuery,
        body: RequestToMake,
        response: { 200: RequestAnswer, 201: RequestAnswer, ...failures },
      },
    },
    async ({ body, headers }, reply) => {
      const { queue, count, requirements, payload } = body;
      const key = headers['idempotency-key'];
      if (Array.isArray(key))
        throw new ThresherError('request-wrong', 'there is more than one Idempotency-Key; send one');
      const asked = { queue, count, payload: payload ?? {}, requirements: requirements ?? {} };
      const input: RequestInput = key === undefined ? asked : { ...asked, key };
      const { id, isNew } = await requests.ask(input, 'http');
      reply.header('location', `/api/requests/${id}`);
      return reply.code(isNew ? 201 : 200).send(await found(id));
    },
  );
  app.get<{ Querystring: Static<typeof RequestsQuery> }>(
    '/api/requests',
    {
      schema: {
        summary: 'Requests of operators for workers, newest first, and why they wait',
        querystring: RequestsQuery,
        response: { 200: RequestsAnswer, ...failures },
      },
    },
    async ({ query: { queue, limit } }) => {
      const [records, all] = [await store.requests.list({ queue, limit }), await queues()];
      return records.map((record) => shown(record, all));
    },
  );
  app.get<{ Params: Static<typeof RequestParams> }>(
    '/api/requests/:request',
    {
      schema: {
        summary: 'One request with its workers',
        params: RequestParams,
        querystring: NoQuery,
        response: { 200: RequestWithWorkersAnswer, ...failures },
      },
    },
    async ({ params }) => ({
      ...(await found(params.request)),
      shownWorkers: (await store.requests.workersOf(params.request, shownWorkers)).map(workerView),
    }),
  );
  app.delete<{ Params: Static<typeof RequestParams>; Querystring: Static<typeof WithdrawQuery> }>(
    '/api/requests/:request',
    {
      config: { writes: true },
      schema: {
        summary: 'Take a request back: its workers are ended, and those that it still lacks never come',
        params: RequestParams,
        querystring: WithdrawQuery,
        response: { 200: RequestAnswer, ...failures },
      },
    },
    async ({ params, query: { reason } }) => {
      await findRequest(served, params.request);
      await requests.withdraw(params.request, reason);
      return found(params.request);
    },
  );
}

/** @throws ThresherError `no-such-request` */
async function findRequest({ store }: Served, id: string): Promise<RequestRecord> {
  const record = await store.requests.byId(id);
  if (record === undefined) throw new ThresherError('no-such-request', `there is no request ${id}`);
  return record;
}

function shown(record: RequestRecord, queues: readonly QueueView[]): Shown {
  const view = requestView(record);
  if (view.state !== 'waiting') return { ...view, reasons: [] };
  const queue = queues.find(({ name }) => name === record.queue);
  const missing = { code: 'no-such-queue', message: `there is no queue ${record.queue}` };
  return { ...view, reasons: queue === undefined ? [missing] : withoutDemand(queue.reasons) };
}

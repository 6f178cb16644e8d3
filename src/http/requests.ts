import { Ajv } from 'ajv';
import type { FastifyInstance } from 'fastify';
import type { Static } from 'typebox';
import { type RequestView, requestView, whyRequestWaits } from '../daemon/requests/request-view.ts';
import { type QueueView, workerView } from '../daemon/view.ts';
import type { RequestInput } from '../daemon/requests/new-request.ts';
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
/** Takes values of a body as they are: queries are texts, of which Fastify makes numbers, and JSON says what it means. */
const bodies = new Ajv({ useDefaults: true, strict: false, verbose: true });
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
  const shown = (record: RequestRecord, all: readonly QueueView[]): Shown => {
    const queue = all.find(({ name }) => name === record.queue);
    return { ...requestView(record), reasons: whyRequestWaits(record, queue, requests.reasonsOf(record)) };
  };
  app.post<{ Body: Static<typeof RequestToMake> }>(
    '/api/requests',
    {
      bodyLimit: longestBody,
      config: { writes: true },
      validatorCompiler: ({ schema }) => bodies.compile(schema as object),
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

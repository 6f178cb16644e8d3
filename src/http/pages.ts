import { membersView } from '../daemon/sharing/members-view.ts';
import type { FastifyInstance } from 'fastify';
import type { Static } from 'typebox';
import { judgeHealth } from '../daemon/supervision/health.ts';
import { workerDetails, workerView } from '../daemon/view.ts';
import type { WorkerRecord } from '../store/rows.ts';
import Type from '../util/type.ts';
import { ThresherError } from '../worker/errors.ts';
import { findWorker } from './api.ts';
import type { LogTails } from './log-tail.ts';
import { factoryPage } from './page-factory.ts';
import { type ShownLog, workerPage } from './page-worker.ts';
import { PageQuery, NoQuery, WorkerParams } from './schemas.ts';
import type { Served } from './served.ts';
import type { Shared } from './shared.ts';

/** Workers on the front page. */
const shownWorkers = 50;
/** The end of each stream on a worker's page: lines, bytes, and how long its backend may take, ms. */
const shownLog = { tail: 100, maxBytes: 64 * 1024, timeout: 5000 };

const page = { content: { 'text/html': { schema: Type.String() } } };
const response = {
  200: { description: 'A page.', ...page },
  default: { description: 'The error.', ...page },
};

/** Everything for people. */
export function addPages(app: FastifyInstance, served: Served, { queues: allQueues, tails }: Shared): void {
  const { store, clock } = served;
  app.get<{ Querystring: Static<typeof PageQuery> }>(
    '/',
    {
      config: { page: true },
      schema: { summary: 'Queues and the latest workers', querystring: PageQuery, response },
    },
    async ({ query: { queue } }, reply) => {
      const queues = await allQueues();
      const workers = (await store.workers.list({ queue, limit: shownWorkers })).map(workerView);
      const { factoryId, version } = served;
      const { stuck } = judgeHealth(served.health());
      const orphans = await store.figures.orphans();
      const services = served.services();
      const panda = await served.panda();
      const members = membersView((await store.sharedOut?.()) ?? { members: [], shares: [] });
      const of = { factoryId, version, now: clock.now(), queue, leader: served.leader() };
      const facts = { ...of, members, queues, workers, stuck, services, orphans, panda };
      return reply.type('text/html; charset=utf-8').send(factoryPage(facts).html);
    },
  );
  app.get<{ Params: Static<typeof WorkerParams> }>(
    '/workers/:id',
    {
      config: { page: true },
      schema: {
        summary: 'A worker: facts, history, and the ends of its logs',
        params: WorkerParams,
        querystring: NoQuery,
        response,
      },
    },
    async ({ params, signal }, reply) => {
      const worker = await findWorker(store, params.id);
      const [details, stdout, stderr] = await Promise.all([
        workerDetails(store, worker),
        readLog(tails, worker, 'stdout', signal),
        readLog(tails, worker, 'stderr', signal),
      ]);
      const shown = workerPage({ now: clock.now(), details, stdout, stderr });
      return reply.type('text/html; charset=utf-8').send(shown.html);
    },
  );
}

/** A log that cannot be read says why, in its own place: the facts of the worker are shown all the same. */
async function readLog(
  tails: LogTails,
  worker: WorkerRecord,
  stream: 'stdout' | 'stderr',
  signal: AbortSignal,
): Promise<ShownLog> {
  try {
    const { bytes, cut } = await tails.read(worker, { stream, ...shownLog }, signal);
    return { text: bytes.toString('utf8'), cut };
  } catch (error) {
    if (!(error instanceof ThresherError)) throw error;
    return { failure: { code: error.code, message: error.message } };
  }
}

import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { Static } from 'typebox';
import Type from '../util/type.ts';
import { workerOfJob, workersOf } from '../daemon/htcjobs.ts';
import type { LogReader } from '../plugins/contracts/index.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Clock } from '../util/clock.ts';
import { withDeadline } from '../util/deadline.ts';
import { ThresherError } from '../worker/errors.ts';
import {
  HtcJobAnswer,
  HtcJobEventsAnswer,
  HtcJobLogQuery,
  HtcJobParams,
  HtcJobsAnswer,
  HtcJobsQuery,
} from './htcjob-schemas.ts';
import { Failure, NoQuery } from './schemas.ts';
import type { HtcJobs, Served } from './served.ts';
import type { Shared } from './shared.ts';

/** Most of a log that one answer holds, bytes, and how long its backend may take, ms. */
const log = { maxBytes: 1024 * 1024, timeout: 10_000 };
/** Questions to the API server under way at the same time, and how long one may take, ms. */
const questions = { atOnce: 4, timeout: 10_000 };
/** Logs that are followed at the same time: each asks its backend every few seconds. */
const mostFollowed = 10;
/** How long the first words of a followed log may be waited for before the answer begins, ms. */
const firstWords = 1000;

/** HTCJobs for programs: as the API server has them, with the workers and logs that thresher has. */
export function addHtcJobs(app: FastifyInstance, served: Served, { tails }: Shared): void {
  const { store, clock } = served;
  const failures = { '4XX': Failure, '5XX': Failure };
  let asked = 0;
  let followed = 0;

  const ask = async <T>(
    signal: AbortSignal,
    question: (jobs: HtcJobs, signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    const jobs = served.htcJobs;
    if (jobs === undefined)
      throw new ThresherError(
        'http-not-found',
        'this daemon is no operator of HTCJobs: its settings have no sources.htcjob',
      );
    if (asked >= questions.atOnce)
      throw new ThresherError('log-busy', `${asked} questions about HTCJobs are under way; ask again`);
    const deadline = { clock, what: 'the question about HTCJobs', timeoutMs: questions.timeout, signal };
    return withDeadline(deadline, async (end) => {
      asked++;
      try {
        return await question(jobs, end);
      } finally {
        // Only now: a question that is answered by the deadline may be under way still.
        asked--;
      }
    });
  };
  const one = ({ namespace, name }: Static<typeof HtcJobParams>, signal: AbortSignal) =>
    ask(signal, (jobs, end) => jobs.one(`${namespace}/${name}`, end));

  app.get<{ Querystring: Static<typeof HtcJobsQuery> }>(
    '/api/htcjobs',
    {
      schema: {
        summary: "HTCJobs of the operator's cluster, without their scripts and other long parts",
        querystring: HtcJobsQuery,
        response: { 200: HtcJobsAnswer, ...failures },
      },
    },
    ({ query: { namespace }, signal }) => ask(signal, (jobs, end) => jobs.list(namespace, end)),
  );
  app.get<{ Params: Static<typeof HtcJobParams> }>(
    '/api/htcjobs/:namespace/:name',
    {
      schema: {
        summary: 'One HTCJob with its workers',
        params: HtcJobParams,
        querystring: NoQuery,
        response: { 200: HtcJobAnswer, ...failures },
      },
    },
    async ({ params, signal }) => {
      const job = await one(params, signal);
      return { ...job, workers: await workersOf(store, job) };
    },
  );
  app.get<{ Params: Static<typeof HtcJobParams> }>(
    '/api/htcjobs/:namespace/:name/events',
    {
      schema: {
        summary: 'The Events of a HTCJob, oldest first',
        params: HtcJobParams,
        querystring: NoQuery,
        response: { 200: HtcJobEventsAnswer, ...failures },
      },
    },
    ({ params, signal }) =>
      ask(signal, async (jobs, end) =>
        jobs.events(await jobs.one(`${params.namespace}/${params.name}`, end), end),
      ),
  );
  app.get<{ Params: Static<typeof HtcJobParams>; Querystring: Static<typeof HtcJobLogQuery> }>(
    '/api/htcjobs/:namespace/:name/logs',
    {
      schema: {
        summary:
          'The end of the log of a job; with `follow` also all that it writes from then on, until it ends',
        params: HtcJobParams,
        querystring: HtcJobLogQuery,
        response: {
          200: {
            description: 'The last lines, 1 MiB at most, and what follows.',
            content: { 'text/plain': { schema: Type.String() } },
          },
          ...failures,
        },
      },
    },
    async ({ params, query: { index, stream, tail, follow }, signal, raw }, reply) => {
      const worker = await workerOfJob(store, await one(params, signal), index);
      reply.type('text/plain; charset=utf-8');
      if (!follow) {
        const { bytes, cut } = await tails.read(worker, { stream, tail, ...log }, signal);
        if (cut) reply.header('thresher-log-cut', 'true');
        return reply.send(bytes);
      }
      if (followed >= mostFollowed)
        throw new ThresherError('log-busy', `${followed} logs are followed already; ask again later`);
      followed++;
      try {
        const pieces = await begun(await served.logsOf(worker), worker, { stream, tail, signal, clock });
        // A job may be silent for hours.
        raw.socket.setTimeout(0);
        const text = Readable.from(pieces, { objectMode: false });
        text.once('close', () => followed--);
        return await reply.send(text);
      } catch (error) {
        followed--;
        throw error;
      }
    },
  );
}

interface Followed {
  readonly stream: 'stdout' | 'stderr';
  readonly tail: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** A log that is followed. A failure that shows at once is thrown, so that it has a status of its own. */
async function begun(
  reader: LogReader,
  worker: WorkerRecord,
  { stream, tail, signal, clock }: Followed,
): Promise<AsyncIterable<Uint8Array>> {
  const end = new AbortController();
  const request = { stream, tail, follow: true } as const;
  const pieces = reader.read(worker, request, AbortSignal.any([signal, end.signal]))[Symbol.asyncIterator]();
  const first = pieces.next();
  const heard = new AbortController();
  await Promise.race([first, clock.sleep(firstWords, heard.signal)]).finally(() => {
    heard.abort();
  });
  async function* all() {
    try {
      for (let piece = await first; piece.done !== true; piece = await pieces.next()) yield piece.value;
    } finally {
      end.abort();
    }
  }
  return all();
}

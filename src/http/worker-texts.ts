import type { FastifyInstance } from 'fastify';
import type { Static } from 'typebox';
import { logPaths } from '../daemon/log-urls.ts';
import { withDeadline } from '../util/deadline.ts';
import Type from '../util/type.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import { findWorker } from './api.ts';
import { NoQuery, WorkerParams } from './schemas.ts';
import type { Served } from './served.ts';
import type { Shared } from './shared.ts';

/** Most of a log that one answer holds, and how long its backend may take, ms. */
const log = { tail: 10_000, maxBytes: 1024 * 1024, timeout: 10_000 };
/** Workers that are rendered at once: a template on a dead disk must not be read by all who ask. */
const renderedAtOnce = 2;

const streams = [
  { path: logPaths.stdOut, stream: 'stdout', summary: 'The end of the standard output' },
  { path: logPaths.stdErr, stream: 'stderr', summary: 'The end of the standard error output' },
  { path: logPaths.batchLog, stream: 'job-log', summary: 'The words of the backend on the job' },
] as const;

const text = (description: string) => ({
  200: { description, content: { 'text/plain': { schema: Type.String() } } },
  default: { description: 'The error.', content: { 'text/html': { schema: Type.String() } } },
});

/** The texts of a worker, each at an address of its own: the PanDA monitor links them. Their errors are pages. */
export function addWorkerTexts(app: FastifyInstance, served: Served, { tails }: Shared): void {
  const { store, clock } = served;
  for (const { path, stream, summary } of streams)
    app.get<{ Params: Static<typeof WorkerParams> }>(
      `/workers/:id/${path}`,
      {
        config: { page: true },
        schema: {
          summary,
          params: WorkerParams,
          querystring: NoQuery,
          response: text('The last 10,000 lines, 1 MiB at most.'),
        },
      },
      async ({ params, signal }, reply) => {
        const worker = await findWorker(store, params.id);
        const { bytes, cut } = await tails.read(worker, { stream, ...log }, signal);
        if (cut) reply.header('thresher-log-cut', 'true');
        return reply.type('text/plain; charset=utf-8').send(bytes);
      },
    );
  let rendering = 0;
  app.get<{ Params: Static<typeof WorkerParams> }>(
    `/workers/:id/${logPaths.jdl}`,
    {
      config: { page: true },
      schema: {
        summary: 'The job as its backend got it, without secrets',
        params: WorkerParams,
        querystring: NoQuery,
        response: text('As `thresher render --worker` shows it.'),
      },
    },
    async ({ params, signal }, reply) => {
      const worker = await findWorker(store, params.id);
      if (rendering >= renderedAtOnce)
        throw new ThresherError('log-busy', `${rendering} workers are being rendered; ask again`);
      const what = `the job of worker ${worker.workerId}`;
      const deadline = { clock, what, timeoutMs: log.timeout, signal };
      const shown = await withDeadline(deadline, async () => {
        rendering++;
        try {
          return await served.renderedOf(worker);
        } catch (error) {
          // A template that is gone, say: no fault of the server.
          throw new ThresherError(
            'no-render',
            `${what} cannot be shown: ${messageOf(error)}`,
            {},
            { cause: error },
          );
        } finally {
          // Only now: a file that hangs is still being read.
          rendering--;
        }
      });
      return reply.type('text/plain; charset=utf-8').send(shown);
    },
  );
}

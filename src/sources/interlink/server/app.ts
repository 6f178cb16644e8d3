import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { oneLine } from '../../../util/one-line.ts';
import { messageOf } from '../../../worker/errors.ts';
import { bounds } from '../bounds.ts';
import { BodyRoom, mebibytes } from './body.ts';
import { Refusal } from '../refusal.ts';
import {
  answerCreate,
  answerDelete,
  answerLogs,
  answerStatus,
  answerSystemInfo,
  sessionHeader,
  statusBody,
  statusHooks,
  type ServedPods,
} from './answers.ts';
import { LogStreams } from './log-streams.ts';
import { refuseExpectation, refuseNotHttp, requireProgram } from './not-http.ts';

/** ms. interLink waits 120 s for the head of an answer, and /create waits for the job. */
const patience = { request: 60_000, keepAlive: 65_000 };

type Answer = (served: ServedPods, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** All that interLink asks of a plugin. Source: routes of interLink's plugins; GET with a body is what interLink sends. */
export function makeSidecarApp(served: ServedPods): FastifyInstance {
  const { log } = served;
  const app = fastify({
    bodyLimit: bounds.bodyBytes,
    http: { maxHeaderSize: bounds.headerBytes },
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    requestTimeout: patience.request,
    keepAliveTimeout: patience.keepAlive,
    routerOptions: { ignoreTrailingSlash: true },
    frameworkErrors: (error, _request, reply) => {
      refuse(reply, 400, messageOf(error));
    },
    clientErrorHandler: refuseNotHttp,
  });
  const streams = new LogStreams(log);
  app.addHook('preClose', async () => {
    streams.end();
  });
  app.server.maxConnections = bounds.connections;
  // A ping may still come on a connection that is open.
  app.server.on('drop', () => {
    served.service.missed(`more than ${bounds.connections} connections are open`);
  });
  app.server.on('checkExpectation', refuseExpectation);
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body);
  });
  app.addHook('onRequest', async (request) => {
    requireProgram(request.raw, served.isOpen === true);
  });
  // A new Pod waits for the disk: nothing that is answered from memory waits for it.
  const [newPods, others] = [new BodyRoom(), new BodyRoom()];
  app.addHook('preParsing', async (request, reply) => {
    await (pathOf(request) === '/create' ? newPods : others).enter(request, reply);
  });
  app.addHook('onResponse', async (request, reply) => {
    const facts = {
      method: request.method,
      path: pathOf(request),
      status: reply.statusCode,
      ...sessionOf(request),
    };
    // Each Pod is asked for every few seconds.
    if (reply.statusCode < 400 && facts.path === '/status') log.debug('interLink asked', facts);
    else log.info('interLink asked', facts);
  });
  app.setNotFoundHandler((request, reply) => {
    refuse(
      reply,
      404,
      `there is no ${request.method} ${pathOf(request)}; there are /create, /delete, /status, /getLogs and /system-info`,
    );
  });
  app.setErrorHandler((error: unknown, request, reply) => {
    if (error instanceof Refusal) {
      refuse(reply, error.status, error.message);
      return;
    }
    const status = (error as { statusCode?: unknown }).statusCode;
    if (status === 413) refuse(reply, 413, `the body is longer than ${mebibytes(bounds.bodyBytes)}`);
    else if (status === 415) refuse(reply, 415, 'the Content-Type is none; send application/json');
    else if (typeof status === 'number' && status >= 400 && status < 500)
      refuse(reply, status, messageOf(error));
    else {
      log.error('a request failed', {
        path: pathOf(request),
        error: messageOf(error),
        ...sessionOf(request),
      });
      refuse(reply, 500, `thresher failed to answer: ${messageOf(error)}`);
    }
  });
  const post = (url: string, answer: Answer) => {
    app.post(url, async (request, reply) => json(reply, await answer(served, request, reply)));
  };
  post('/create', answerCreate);
  post('/delete', answerDelete);
  void app.register(async (alone) => {
    alone.removeAllContentTypeParsers();
    alone.addContentTypeParser('*', statusBody);
    alone.route({
      method: ['GET', 'POST'],
      url: '/status',
      ...statusHooks(served),
      handler: async (request, reply) => json(reply, await answerStatus(served, request)),
    });
  });
  app.route({
    method: ['GET', 'POST'],
    url: '/getLogs',
    handler: async (request, reply) => answerLogs(served, streams, request, reply),
  });
  app.get('/system-info', async (_request, reply) => json(reply, answerSystemInfo(served)));
  return app;
}

function json(reply: FastifyReply, value: unknown): FastifyReply {
  return reply.code(200).type('application/json; charset=utf-8').send(JSON.stringify(value));
}

/** interLink hands the text on as it is: it becomes the Pod's message. */
function refuse(reply: FastifyReply, status: number, message: string): void {
  void reply.code(status).type('text/plain; charset=utf-8').send(oneLine(message).slice(0, bounds.sentence));
}

function pathOf({ url }: FastifyRequest): string {
  return url.split('?')[0]?.slice(0, 100) ?? '';
}

/** The names by which interLink's own log calls this request. */
function sessionOf({ headers }: FastifyRequest): Record<string, string> {
  const session = headers[sessionHeader];
  const trace = headers['traceparent'];
  return {
    ...(typeof session === 'string' && { session: oneLine(session).slice(0, 100) }),
    ...(typeof trace === 'string' && { traceparent: oneLine(trace).slice(0, 100) }),
  };
}

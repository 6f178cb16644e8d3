import swagger from '@fastify/swagger';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { queueViews } from '../daemon/view.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import { isForeignPage, isOurName, isSameToken, tokenIn } from './access.ts';
import { addApi } from './api.ts';
import { boundConnections, endAfter } from './connections.ts';
import { addDoors } from './doors.ts';
import { type Answer, answerTo } from './failures.ts';
import { addHtcJobs } from './htcjobs.ts';
import { LogTails } from './log-tail.ts';
import { addPages } from './pages.ts';
import { addRequests } from './requests.ts';
import { failurePage } from './page-layout.ts';
import type { Served } from './served.ts';
import { type TokenFiles, writeTokenOf } from './token-file.ts';
import { addWorkerTexts } from './worker-texts.ts';
import type { Clock } from '../util/clock.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers without a token: the supervisor of the process asks, and learns nothing else. */
    readonly open?: boolean;
    /** A source answers there, and checks itself who asks: any method, and none of the server's tokens. */
    readonly door?: boolean;
    /** It changes something. */
    readonly writes?: boolean;
    /** For people: its errors are pages, too. */
    readonly page?: boolean;
  }
}

/**
 * A client that sends, or takes, nothing is not kept for longer, ms: until its request is complete, while its answer is made or under
 * way, which a log may take 10 s for, and until its next request. Node looks only so often which have come too late.
 */
const usualPatience = { request: 10_000, answer: 15_000, keepAlive: 5000, look: 1000 };
export type Patience = typeof usualPatience;
const maxConnections = 200;
/** Of one connection, which then ends: a client may send thousands at once, and all that come together are taken in one turn. */
const maxRequests = 100;
/** Counting all workers is the dearest question: it is asked once in this time, ms. */
const keptFor = 1000;

const securityHeaders = {
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** All routes, with their guards; it listens nowhere yet. */
export async function makeApp(
  served: Served,
  tokens: TokenFiles = {},
  patience: Patience = usualPatience,
): Promise<FastifyInstance> {
  const app = fastify({
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    requestTimeout: patience.request,
    connectionTimeout: patience.answer,
    keepAliveTimeout: patience.keepAlive,
    maxRequestsPerSocket: maxRequests,
    http: { connectionsCheckingInterval: patience.look },
    // A mistyped filter must not mean all of them; `verbose` is for our messages.
    ajv: { customOptions: { removeAdditional: false, strict: false, verbose: true } },
    frameworkErrors: (error, request, reply) => {
      reply.headers(securityHeaders);
      send(answerTo(error), request, reply);
    },
  });
  boundConnections(app.server, maxConnections);
  endAfter(app.server, maxRequests);
  // A form of a foreign page can send text, and no JSON.
  app.removeContentTypeParser('text/plain');
  // The schemas describe the answers, they do not change them: tests hold the two together.
  app.setSerializerCompiler(() => JSON.stringify);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(securityHeaders);
    if (request.routeOptions.config.door === true) return;
    if (tokens.read === undefined) requireOurName(request, served);
    else if (request.routeOptions.config.open !== true) await requireToken(request, tokens);
    if (request.method === 'GET') return;
    if (request.routeOptions.config.writes !== true) {
      reply.header('allow', 'GET');
      const message = `${request.method} is not answered here; only GET is, and POST and DELETE of /api/requests`;
      throw new ThresherError('http-method', message);
    }
    await requireWriter(request, tokens);
  });
  app.setNotFoundHandler(({ url }) => {
    throw new ThresherError(
      'http-not-found',
      `there is nothing at ${url}; /api/openapi.json lists all paths`,
    );
  });
  app.setErrorHandler((error, request, reply) => {
    const answer = answerTo(error);
    if (answer.status === 500) {
      served.log.error('request failed', { url: request.url, error: messageOf(error) });
    }
    send(answer, request, reply);
  });
  await app.register(swagger, { openapi: describeApi(served, tokens.read !== undefined) });
  const shared = {
    queues: briefly(served.clock, keptFor, () => queueViews(served.store, 'unknown')),
    tails: new LogTails(served),
  };
  addApi(app, served, shared);
  addRequests(app, served, shared);
  addPages(app, served, shared);
  addHtcJobs(app, served, shared);
  addDoors(app, served);
  addWorkerTexts(app, served, shared);
  await app.ready();
  return app;
}

function send({ status, reason }: Answer, request: FastifyRequest, reply: FastifyReply): void {
  reply.code(status);
  // A browser asks its user for the token.
  if (status === 401) reply.header('www-authenticate', 'Basic realm="thresher", charset="UTF-8"');
  if (request.routeOptions.config.page === true) {
    reply.type('text/html; charset=utf-8').send(failurePage(reason).html);
  } else reply.type('application/json; charset=utf-8').send(JSON.stringify(reason));
}

/** @throws ThresherError `http-host-refused` */
function requireOurName({ headers }: FastifyRequest, { ownNames }: Served): void {
  if (isOurName(headers.host, ownNames)) return;
  const message = `no token is asked for here, so the name ${headers.host ?? ''} is refused: it may be a foreign site's`;
  throw new ThresherError('http-host-refused', message, { host: headers.host });
}

/** Either token reads. @throws ThresherError `http-token-refused`, `http-token-unreadable` */
async function requireToken({ headers }: FastifyRequest, { read, write }: TokenFiles): Promise<void> {
  const given = tokenIn(headers.authorization);
  const token = await read?.token();
  if (isRight(given, token)) return;
  // A damaged file of this token costs the readers nothing.
  if (write !== undefined && isRight(given, await write.token().catch(() => undefined))) return;
  throw tokenRefused(given);
}

/**
 * A browser sends the password that its user typed with requests of foreign pages, too: these tell by their headers where they come
 * from. @throws ThresherError `http-write-refused`, `http-foreign-page`, `http-token-refused`, `http-token-unreadable`, `http-tokens-same`
 */
async function requireWriter({ headers }: FastifyRequest, tokens: TokenFiles): Promise<void> {
  const token = await writeTokenOf(tokens);
  if (token === undefined) {
    const message =
      'requests that change something need a token of their own, and none is set: set http.writeTokenFile';
    throw new ThresherError('http-write-refused', message);
  }
  const given = tokenIn(headers.authorization);
  if (!isRight(given, token)) {
    // It passed as a reader before.
    if (tokens.read === undefined) throw tokenRefused(given);
    const message = 'this token may only read: send the one of http.writeTokenFile';
    throw new ThresherError('http-write-refused', message);
  }
  if (!isForeignPage(headers)) return;
  const from = headers.origin ?? String(headers['sec-fetch-site']);
  throw new ThresherError('http-foreign-page', `the request comes from a page of another site (${from})`);
}

function isRight(given: string | undefined, token: string | undefined): boolean {
  return given !== undefined && token !== undefined && isSameToken(given, token);
}

function tokenRefused(given: string | undefined): ThresherError {
  const what = given === undefined ? 'brought no token' : 'brought a wrong token';
  const message = `the request ${what}; send "Authorization: Bearer TOKEN", or the token as the password`;
  return new ThresherError('http-token-refused', message);
}

function describeApi({ version }: Served, withToken: boolean) {
  const schemes = {
    bearer: { type: 'http', scheme: 'bearer' },
    basic: { type: 'http', scheme: 'basic', description: 'Any user; the token as the password.' },
  } as const;
  return {
    openapi: '3.1.0',
    info: {
      title: 'thresher',
      version,
      description:
        'Health, metrics and status of a pilot factory, and requests for workers. POST and DELETE need the token of `http.writeTokenFile`.',
    },
    ...(withToken && {
      components: { securitySchemes: schemes },
      security: [{ bearer: [] }, { basic: [] }],
    }),
  };
}

/** Keeps an answer for `ms`: however many ask, the work is done once in that time. A failure is not kept. */
export function briefly<T>(clock: Clock, ms: number, ask: () => Promise<T>): () => Promise<T> {
  let kept: { readonly answer: Promise<T>; readonly at: number } | undefined;
  return () => {
    const now = clock.monotonic();
    if (kept !== undefined && now - kept.at < ms) return kept.answer;
    const mine = { answer: ask(), at: now };
    kept = mine;
    mine.answer.catch(() => {
      if (kept === mine) kept = undefined;
    });
    return mine.answer;
  };
}

import type { FastifyInstance } from 'fastify';
import { longestSourceBody } from '../plugins/contracts/index.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import type { Served } from './served.ts';

/** Fields of an answer that belong to the connection, or that a source may not set for a server it shares. */
const ownHeaders: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'transfer-encoding', 'keep-alive', 'upgrade', 'trailer'],
  ...['set-cookie', 'content-security-policy', 'x-content-type-options', 'cache-control'],
]);

/** The doors of sources: `/sources/KIND/...`. Each source has one for itself, and reads plain data. */
export function addDoors(app: FastifyInstance, served: Served): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    const asBytes = { parseAs: 'buffer', bodyLimit: longestSourceBody } as const;
    scope.addContentTypeParser('*', asBytes, (_request, body, done) => {
      done(null, body);
    });
    scope.setErrorHandler((error, _request, reply) => {
      if ((error as { statusCode?: number }).statusCode !== 413) throw error;
      const message = `the body is longer than the ${longestSourceBody / 1024} KiB that a source takes`;
      void reply.code(413).send({ code: 'http-body-too-long', message });
    });
    scope.route<{ Params: { kind: string; '*': string } }>({
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
      url: '/sources/:kind/*',
      bodyLimit: longestSourceBody,
      config: { door: true },
      schema: { hide: true },
      handler: async ({ method, params, headers, body }, reply) => {
        const { kind, '*': path } = params;
        const given = {
          method,
          path,
          headers: textsOf(headers),
          body: body instanceof Uint8Array ? body : empty,
        };
        const answer = await served.askSource(kind, given).catch((error: unknown) => {
          if (error instanceof ThresherError) throw error;
          served.log.error('a source failed to answer', { source: kind, error: messageOf(error) });
          throw new ThresherError('plugin-failed', `source ${kind} failed to answer`);
        });
        if (answer === undefined)
          throw new ThresherError('http-not-found', `no source answers at /sources/${kind}/`);
        reply.code(answer.status).type('application/json; charset=utf-8');
        for (const [name, value] of Object.entries(answer.headers ?? {}))
          if (!ownHeaders.has(name.toLowerCase())) reply.header(name, value);
        return reply.send(answer.body);
      },
    });
  });
}

const empty = new Uint8Array();

function textsOf(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
    ),
  );
}

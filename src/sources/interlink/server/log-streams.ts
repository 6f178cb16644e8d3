import type { FastifyReply } from 'fastify';
import type { LogStruct } from '../../../clients/interlink/wire.ts';
import type { Log } from '../../../plugins/contracts/index.ts';
import { bounds } from '../bounds.ts';
import type { PodService } from '../pod-service.ts';
import { Refusal } from '../refusal.ts';

/** The logs that go out now. */
export class LogStreams {
  readonly #log: Log;
  readonly #over = new AbortController();
  #followed = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Ends them: a log that is followed has no end of its own. */
  end(): void {
    this.#over.abort();
  }

  /** A log may take longer than any other answer, and a client waits for its head only so long. @throws Refusal */
  async send(asked: LogStruct, service: PodService, reply: FastifyReply, gone: AbortSignal): Promise<void> {
    const { Follow } = asked.Opts;
    if (Follow && this.#followed >= bounds.followedLogs)
      throw new Refusal(
        503,
        `${bounds.followedLogs} logs are followed already: end some of these, or ask without following`,
      );
    this.#followed += Follow ? 1 : 0;
    try {
      await this.#send(asked, service, reply, AbortSignal.any([gone, this.#over.signal]));
    } finally {
      this.#followed -= Follow ? 1 : 0;
    }
  }

  async #send(asked: LogStruct, service: PodService, reply: FastifyReply, gone: AbortSignal): Promise<void> {
    const pieces = await service.logs(asked, gone);
    const { raw } = reply;
    reply.hijack();
    raw.writeHead(200, { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' });
    raw.flushHeaders();
    try {
      for await (const piece of pieces) {
        if (!raw.write(piece)) await drained(reply, gone);
      }
      // An end without its last chunk is an error for the client, and an incomplete log must not look complete.
      if (gone.aborted) raw.destroy();
      else raw.end();
    } catch (error) {
      this.#log.warn('a log could not be read', { pod: asked.PodUID, error: String(error) });
      raw.destroy();
    }
  }
}

function drained({ raw }: FastifyReply, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      raw.removeListener('drain', done);
      gone.removeEventListener('abort', done);
      resolve();
    };
    raw.once('drain', done);
    gone.addEventListener('abort', done);
    if (gone.aborted) done();
  });
}

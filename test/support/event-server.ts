import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { EventDoor } from '../../src/sources/htcjob/job/event-door.ts';
import type { JobReport } from '../../src/clients/htcjob/resource.ts';

/** An event as it arrived. */
export interface SeenEvent {
  readonly id: string | undefined;
  readonly body: string;
}

/** A receiver of events on loopback, without a daemon. */
export class EventServer implements AsyncDisposable {
  readonly key = Buffer.from('k'.repeat(32));
  /** Events that the door took. */
  readonly taken: JobReport[] = [];
  readonly seen: SeenEvent[] = [];
  /** Statuses of the first answers, in the place of the door's; 0 hangs up. */
  first: number[] = [];
  /** Called with each event before it is answered. */
  arrived: () => Promise<void> = async () => undefined;
  readonly #door = new EventDoor(this.key, (report) => this.taken.push(report) > 0);
  readonly #server: Server;

  static async start(): Promise<EventServer> {
    const made = new EventServer();
    await new Promise<void>((resolve) => {
      made.#server.listen(0, '127.0.0.1', resolve);
    });
    return made;
  }

  private constructor() {
    this.#server = createServer((request, response) => {
      const answer = async () => {
        const body = await buffer(request);
        const headers = Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
        );
        await this.arrived();
        this.seen.push({ id: headers['ce-id'], body: String(body) });
        const status = this.first.shift();
        if (status === 0) request.socket.destroy();
        else if (status !== undefined) response.writeHead(status).end();
        else {
          const path = (request.url ?? '').slice(1);
          const given = this.#door.answer({ method: request.method ?? '', path, headers, body });
          response.writeHead(given.status).end(given.body);
        }
      };
      answer().catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/cloudevents`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
  }
}

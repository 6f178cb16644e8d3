import { connect, type Socket } from 'node:net';
import { type Calls, type Line, linesTo, type Seen, type Verb } from './protocol.ts';

type Show = (shows: 'all' | 'changes', seen: readonly Seen[]) => void;

interface Waiting {
  readonly line: (line: Line) => void;
  readonly lost: (error: Error) => void;
}

/** The one connection of a daemon to the simulator: made when it is needed, and anew after it was lost. */
export class SimulatorClient {
  readonly #path: string;
  readonly #waiting = new Map<number, Waiting>();
  #socket: Socket | undefined;
  #last = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws when the connection is lost before the answer */
  ask<V extends Verb>(verb: V, ask: Calls[V]['ask']): Promise<Calls[V]['answer']> {
    return new Promise((resolve, reject) => {
      const id = this.#send(verb, ask, {
        line: (line) => {
          this.#waiting.delete(id);
          if ('answer' in line) resolve(line.answer as Calls[V]['answer']);
        },
        lost: reject,
      });
    });
  }

  /** Follows a connection of the backend until `signal` aborts. @throws when the connection is lost before */
  watch(connection: string, signal: AbortSignal, show: Show): Promise<void> {
    return new Promise((resolve, reject) => {
      const id = this.#send(
        'watch',
        { connection },
        {
          line: (line) => {
            if ('shows' in line) show(line.shows, line.seen);
          },
          lost: reject,
        },
      );
      signal.addEventListener('abort', () => {
        if (this.#waiting.delete(id)) this.#write({ id, verb: 'unwatch', ask: { connection } });
        resolve();
      });
    });
  }

  #send(verb: Verb | 'watch', ask: unknown, waiting: Waiting): number {
    const id = ++this.#last;
    this.#waiting.set(id, waiting);
    this.#write({ id, verb, ask });
    return id;
  }

  #write(question: unknown): void {
    this.#connected().write(`${JSON.stringify(question)}\n`);
  }

  #connected(): Socket {
    if (this.#socket !== undefined) return this.#socket;
    const socket = connect(this.#path);
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#socket = undefined;
      const all = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const { lost } of all) lost(new Error('the simulator is gone'));
    });
    socket.on(
      'data',
      linesTo((text) => {
        const line = JSON.parse(text) as Line;
        this.#waiting.get(line.id)?.line(line);
      }),
    );
    return socket;
  }
}

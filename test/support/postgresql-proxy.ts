import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { temporaryDirectory } from './temporary.ts';

/** Where the connection of a client is cut: before the server gets a statement, or after it has answered that. */
export interface Cut {
  readonly statement: RegExp;
  readonly when: 'before' | 'after';
  /** Only after this statement went through. */
  readonly following?: RegExp;
  /** How many that fit go through before. */
  readonly skip?: number;
  /** Done at that very moment, before anybody hears of the cut. */
  readonly act?: () => void;
}

/** A message of PostgreSQL's protocol: a letter, the length of the rest, the rest. The first one of a client has no letter. */
interface Message {
  readonly type: string;
  readonly body: Buffer;
}

/** Takes whole messages from the front of what came so far. */
function* messagesIn(state: { rest: Buffer; begun: boolean }): Generator<Message> {
  for (;;) {
    const head = state.begun ? 1 : 0;
    if (state.rest.length < head + 4) return;
    const length = state.rest.readUInt32BE(head) + head;
    if (state.rest.length < length) return;
    const type = state.begun ? String.fromCharCode(state.rest[0] ?? 0) : '';
    const body = state.rest.subarray(head + 4, length);
    state.rest = state.rest.subarray(length);
    state.begun = true;
    yield { type, body };
  }
}

/** A server before a server of PostgreSQL, on a Unix socket in a directory of its own. */
abstract class Before {
  readonly directory = temporaryDirectory();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #upstream: string;

  constructor(upstreamDirectory: string) {
    this.#upstream = upstreamDirectory;
    this.#server = createServer((client) => {
      this.keep(client);
      this.serve(client);
    });
  }

  async start(): Promise<void> {
    this.#server.listen(join(this.directory, '.s.PGSQL.5432'));
    await once(this.#server, 'listening');
    this.#server.unref();
  }

  /** From now on connections lead to another server, as an address does after a failover. */
  leadTo(upstreamDirectory: string): void {
    this.#upstream = upstreamDirectory;
  }

  url(database: string): string {
    return `postgresql://thresher@localhost/${database}?host=${this.directory}`;
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.cutAll();
  }

  protected keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  protected connect(): Socket {
    const socket = createConnection(join(this.#upstream, '.s.PGSQL.5432'));
    this.keep(socket);
    return socket;
  }

  protected abstract serve(client: Socket): void;
}

/** Passes everything on, and cuts a connection of a daemon where it is told to. */
export class CuttingProxy extends Before {
  /** Statements in the order in which they came. */
  readonly seen: string[] = [];
  cuts = 0;
  /** Hears each statement before the server gets it. */
  onStatement: (text: string) => void = () => undefined;
  #cut: Cut | undefined;
  #skip = 0;
  #isDue = false;

  /** Cuts once. */
  cutAt(cut: Cut): void {
    this.#cut = cut;
    this.#skip = cut.skip ?? 0;
    this.#isDue = cut.following === undefined;
  }

  /** Cuts no more. */
  leave(): void {
    this.#cut = undefined;
  }

  protected serve(client: Socket): void {
    const server = this.connect();
    const asked = { rest: Buffer.alloc(0), begun: false };
    const answered = { rest: Buffer.alloc(0), begun: true };
    const names = new Map<string, string>();
    let isCommand = false;
    let cutWhenAnswered = false;
    let act: Cut['act'];
    const end = () => {
      this.cuts++;
      act?.();
      client.destroy();
      server.destroy();
    };
    client.on('data', (piece: Buffer) => {
      asked.rest = Buffer.concat([asked.rest, piece]);
      for (const message of messagesIn(asked)) {
        const text = this.#statementOf(message, names);
        if (text === undefined) continue;
        isCommand ||= text.includes("application_name = 'thresher command'");
        if (isCommand) continue;
        this.seen.push(text);
        this.onStatement(text);
        this.#isDue ||= this.#cut?.following?.test(text) ?? false;
        if (this.#cut?.statement.test(text) !== true || !this.#isDue || this.#skip-- > 0) continue;
        const { when } = this.#cut;
        ({ act } = this.#cut);
        this.#cut = undefined;
        if (when === 'before') {
          end();
          return;
        }
        cutWhenAnswered = true;
      }
      server.write(piece);
    });
    server.on('data', (piece: Buffer) => {
      if (!cutWhenAnswered) {
        client.write(piece);
        return;
      }
      answered.rest = Buffer.concat([answered.rest, piece]);
      for (const { type } of messagesIn(answered)) if (type === 'Z') end();
    });
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
  }

  /** The text that a message lets the server carry out. */
  #statementOf({ type, body }: Message, names: Map<string, string>): string | undefined {
    const [first = '', second = ''] = body.toString('utf8').split('\0', 2);
    if (type === 'Q') return first;
    if (type === 'P') names.set(first, second);
    // The portal comes first, and then the name of the statement.
    return type === 'B' ? names.get(second) : undefined;
  }
}

/** Passes everything on until it is told to be silent: then nothing comes through, and nobody hears of it. */
export class SilentProxy extends Before {
  readonly #held: Socket[] = [];
  #isSilent = false;

  silence(): void {
    this.#isSilent = true;
    for (const socket of this.#held) socket.pause();
  }

  heal(): void {
    this.#isSilent = false;
    for (const socket of this.#held) socket.resume();
  }

  protected serve(client: Socket): void {
    const server = this.connect();
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#held.push(from);
      from.on('data', (piece: Buffer) => to.write(piece));
      from.on('close', () => to.destroy());
      if (this.#isSilent) from.pause();
    }
  }
}

/** What a pooler in transaction mode does: each transaction gets whichever session of the server is free. */
export class TransactionPooler extends Before {
  readonly #idle: Socket[] = [];

  protected serve(client: Socket): void {
    const asked = { rest: Buffer.alloc(0), begun: false };
    let lent: Promise<Socket> | undefined;
    const letGo = (server: Socket) => {
      server.removeAllListeners('data');
      // What the server says to nobody is lost.
      server.on('data', () => undefined);
      this.#idle.push(server);
      lent = undefined;
    };
    const borrow = async (): Promise<Socket> => {
      // The one that was idle longest: two clients in turn never keep theirs.
      const server = this.#idle.length > 2 ? this.#idle.shift() : await this.#opened();
      if (server === undefined) throw new Error('no session');
      server.removeAllListeners('data');
      const answered = { rest: Buffer.alloc(0), begun: true };
      server.on('data', (piece: Buffer) => {
        client.write(piece);
        answered.rest = Buffer.concat([answered.rest, piece]);
        for (const { type, body } of messagesIn(answered))
          if (type === 'Z' && body.toString() === 'I') letGo(server);
      });
      return server;
    };
    client.on('data', (piece: Buffer) => {
      const isStart = !asked.begun;
      asked.rest = Buffer.concat([asked.rest, piece]);
      for (const { type } of messagesIn(asked)) {
        if (type === 'X') client.end();
        this.#startup ??= piece;
      }
      if (isStart) {
        client.write(Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]));
        return;
      }
      lent ??= borrow();
      lent.then(
        (server) => server.write(piece),
        () => client.destroy(),
      );
    });
  }

  #startup: Buffer | undefined;

  async #opened(): Promise<Socket> {
    const server = this.connect();
    server.write(this.#startup ?? Buffer.alloc(0));
    const answered = { rest: Buffer.alloc(0), begun: true };
    await new Promise<void>((resolve) => {
      server.on('data', (piece: Buffer) => {
        answered.rest = Buffer.concat([answered.rest, piece]);
        for (const { type } of messagesIn(answered)) if (type === 'Z') resolve();
      });
    });
    return server;
  }
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

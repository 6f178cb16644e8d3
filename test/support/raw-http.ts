/** HTTP by its bytes: what is sent is what the test says, and an answer is read by the rules of HTTP/1.1 alone. */
import { connect, type Socket } from 'node:net';
import { until } from './until.ts';

export interface RawAnswer {
  readonly status: number;
  /** By their names in small letters. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const blank = Buffer.from('\r\n\r\n');

/** One connection. */
export class RawConnection {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (piece: Buffer) => {
      this.#received = Buffer.concat([this.#received, piece]);
    });
    socket.on('close', () => {
      this.#closed = true;
    });
    socket.on('error', () => undefined);
  }

  static to(address: { readonly port: number } | { readonly path: string }): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ ...('port' in address ? { host: '127.0.0.1' } : {}), ...address }, () => {
        resolve(new RawConnection(socket));
      });
      socket.once('error', reject);
    });
  }

  /** What has come and belongs to no answer that was read. */
  get received(): string {
    return this.#received.toString();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  send(bytes: string | Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** Sends nothing more, and still listens. */
  finish(): void {
    this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The next answer but 100 Continue; undefined: the other side has closed the connection without one. */
  async answer(deadline = 20_000): Promise<RawAnswer | undefined> {
    const found = await until(
      () => `an answer has come after ${JSON.stringify(this.#received.toString().slice(0, 200))}`,
      () => this.#next() ?? (this.#closed ? 'none' : undefined),
      deadline,
    );
    return found === 'none' ? undefined : found;
  }

  #next(): RawAnswer | undefined {
    const end = this.#received.indexOf(blank);
    if (end < 0) return undefined;
    const [first = '', ...lines] = this.#received.subarray(0, end).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
    const headers = Object.fromEntries(
      lines.map((line) => {
        const at = line.indexOf(':');
        return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const;
      }),
    );
    const rest = this.#received.subarray(end + blank.length);
    const read =
      status < 200
        ? { body: '', length: 0 }
        : headers['transfer-encoding'] === 'chunked'
          ? chunks(rest)
          : whole(rest, Number(headers['content-length'] ?? '0'));
    if (read === undefined) return undefined;
    this.#received = rest.subarray(read.length);
    return status < 200 ? this.#next() : { status, headers, body: read.body };
  }
}

function whole(bytes: Buffer, length: number) {
  return bytes.length < length ? undefined : { body: bytes.subarray(0, length).toString(), length };
}

function chunks(bytes: Buffer) {
  const pieces: Buffer[] = [];
  for (let at = 0; ;) {
    const end = bytes.indexOf('\r\n', at);
    if (end < 0) return undefined;
    const size = Number.parseInt(bytes.subarray(at, end).toString(), 16);
    const next = end + 2 + size + 2;
    if (bytes.length < next) return undefined;
    if (size === 0) return { body: Buffer.concat(pieces).toString(), length: next };
    pieces.push(bytes.subarray(end + 2, end + 2 + size));
    at = next;
  }
}

/** A request as the fixtures keep it. */
export interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** JSON as Go writes it: these characters stand in no text of a page. */
export function goJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The head of a request, in the order of its headers. */
export function headOf(method: string, path: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`;
}

/** A body in chunks of so many bytes. */
export function chunked(body: string, size: number): string {
  const bytes = Buffer.from(body);
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const piece = bytes.subarray(at, at + size);
    parts.push(`${piece.length.toString(16)}\r\n${piece.toString('latin1')}\r\n`);
  }
  return `${parts.join('')}0\r\n\r\n`;
}

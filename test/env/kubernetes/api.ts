import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';

/** How to speak to an API server as its administrator. */
export interface Access {
  /** https://127.0.0.1:PORT */
  readonly server: string;
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export function accessFrom(certificates: string, port: number): Access {
  const read = (name: string) => readFileSync(join(certificates, name));
  return {
    server: `https://127.0.0.1:${port}`,
    ca: read('ca.crt'),
    cert: read('admin.crt'),
    key: read('admin.key'),
  };
}

/** A connection that nobody has used for so long is closed by us, ms: before the API server does it, after 90 s. */
const idle = 30_000;

export function agentFor({ ca, cert, key }: Access): Agent {
  return new Agent({ ca, cert, key, keepAlive: true, timeout: idle });
}

/** One request, with its whole answer. @throws if there is none within `timeout` ms. */
export function ask(
  access: Access,
  agent: Agent,
  options: {
    readonly method: string;
    readonly path: string;
    readonly body?: string | undefined;
    readonly headers?: Readonly<Record<string, string>>;
    readonly timeout?: number;
  },
): Promise<Answer> {
  const { method, path, body = '', timeout = 30_000 } = options;
  // Said by us: Node would send the body of a DELETE without it, and the server take that for the next request.
  const headers = { ...options.headers, 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve, reject) => {
    const sent = request(
      new URL(path, access.server),
      { method, agent, headers, signal: AbortSignal.timeout(timeout) },
      (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString() });
        });
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => {
      // Closed by the server as it was taken up again: nothing of this came to it. Source: `request.reusedSocket` of Node.
      if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(ask(access, agent, options));
      else reject(error);
    });
    sent.end(body);
  });
}

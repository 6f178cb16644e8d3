import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/** One request as the server got it. */
export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Whether the client showed a certificate. */
  readonly hadCertificate: boolean;
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** An HTTP server on a free port, whose answers a test chooses by path. */
export class FileServer {
  readonly seen: SeenRequest[] = [];
  readonly answers = new Map<string, Answer>();
  readonly #server: ReturnType<typeof createServer>;
  #protocol: 'http' | 'https' = 'http';

  constructor(tls?: { readonly cert: string; readonly key: string }) {
    const listener: RequestListener = (request, response) => {
      const path = request.url ?? '';
      const socket = request.socket as { getPeerCertificate?(): object | undefined };
      const certificate = socket.getPeerCertificate?.() ?? {};
      this.seen.push({ path, headers: request.headers, hadCertificate: Object.keys(certificate).length > 0 });
      const answer = this.answers.get(path);
      if (answer === undefined) response.writeHead(404).end('not here');
      else answer(request, response);
    };
    if (tls === undefined) this.#server = createServer(listener);
    else {
      this.#protocol = 'https';
      this.#server = createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: false }, listener);
    }
  }

  async start(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path: string, host = '127.0.0.1'): string {
    return `${this.#protocol}://${host}:${this.port}${path}`;
  }

  /** Serves this JSON, with an ETag by its content. */
  serveJson(path: string, value: unknown): void {
    const body = JSON.stringify(value);
    const etag = `"${createHash('sha256').update(body).digest('hex')}"`;
    this.answers.set(path, (request, response) => {
      if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end();
      else response.writeHead(200, { 'content-type': 'application/json', etag }).end(body);
    });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
  }
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { bounds } from '../bounds.ts';
import { Refusal } from '../refusal.ts';
import { isLoopback } from './listen.ts';
import { shown } from '../pod/problem.ts';

interface NotHttp {
  readonly fault: string;
  readonly status: string;
  readonly message: string;
}

/** Answers to what no request could be made of. The first match counts; the last row matches all. */
const notHttp: readonly NotHttp[] = [
  {
    fault: 'HPE_HEADER_OVERFLOW',
    status: '431 Request Header Fields Too Large',
    message: `the headers are longer than ${bounds.headerBytes / 1024} KiB`,
  },
  {
    fault: 'ERR_HTTP_REQUEST_TIMEOUT',
    status: '408 Request Timeout',
    message: 'the request did not arrive in time',
  },
  { fault: '', status: '400 Bad Request', message: 'this is no request of HTTP/1.1' },
];

/** Answers in a sentence, and ends the connection: no second request could be told from the rest of the first. */
export function refuseNotHttp(error: Error & { readonly code?: string }, socket: Socket): void {
  const { status, message } = notHttp.find(({ fault }) => fault === '' || fault === error.code) ?? {};
  if (!socket.writable || status === undefined || message === undefined) {
    socket.destroy();
    return;
  }
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(message)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${message}`);
}

/** Go sends `Expect: 100-continue` alone, and Node answers that itself. */
export function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  response
    .writeHead(417, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
    .end('thresher knows no expectation but 100-continue');
}

/**
 * A page in a browser on this machine reaches its loopback, too. Only browsers send `Origin` and `Sec-Fetch-Site`. A page whose name
 * was pointed at the loopback sends neither with a GET, but its name.
 * @param names whether the operator lets others reach the sidecar, by whatever name they have for it
 * @throws Refusal
 */
export function requireProgram({ headers, socket }: IncomingMessage, names: boolean): void {
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined)
    throw new Refusal(403, 'requests of web pages are refused; interLink is no web page');
  const { localAddress } = socket;
  if (names || localAddress === undefined || !isLoopback(localAddress) || isOwnName(headers.host ?? ''))
    return;
  throw new Refusal(
    403,
    `the request calls this machine ${shown(headers.host ?? '')}; on the loopback it must be 127.0.0.1, localhost or a name without a dot, unless othersMayReachIt is set`,
  );
}

/** An address, or a name that no stranger can point at the loopback. */
function isOwnName(host: string): boolean {
  const name = host
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  return isIP(name) !== 0 || !name.includes('.') || name.endsWith('.localhost');
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import { bounds } from '../bounds.ts';
import { Refusal } from '../refusal.ts';

/** Characters of JSON. */
const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The value in the body of a request; undefined: the request has no body.
 * @param values so many at most
 * @throws Refusal
 */
export function jsonOf(body: unknown, values: number = bounds.bodyValues): unknown {
  if (!(body instanceof Uint8Array) || body.length === 0) return undefined;
  requireShape(body, values);
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8')) as unknown;
  } catch {
    // The parser's own words quote the text, which may hold a Secret.
    throw new Refusal(400, 'the body is no JSON');
  }
}

/**
 * Counts before anything is made of the text: 16 MiB of `[1,1,...` would become gigabytes of mistakes, and lists within lists would
 * use up the stack.
 */
function requireShape(json: Uint8Array, mostValues: number): void {
  const { bodyDepth } = bounds;
  let [commas, beginnings, depth] = [0, 0, 0];
  let inText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (inText) {
      if (byte === backslash) at++;
      else if (byte === quote) inText = false;
      continue;
    }
    if (byte === quote) inText = true;
    else if (byte === comma) commas++;
    else if (byte === openList || byte === openObject) {
      beginnings++;
      depth++;
    } else if (byte === closeList || byte === closeObject) depth--;
    if (depth > bodyDepth)
      throw new Refusal(400, `the body has more than ${bodyDepth} lists and objects within each other`);
    if (Math.max(commas, beginnings) > mostValues)
      throw new Refusal(
        413,
        `the body has more than ${mostValues} values: ask for fewer Pods at once, or give a Pod fewer`,
      );
  }
}

/** What each request gives back. */
const leases = new WeakMap<FastifyRequest, () => void>();

/** The body of a request is needed no more. */
export function letGo(request: FastifyRequest): void {
  request.body = undefined;
  leases.get(request)?.();
}

/** Room in memory for bodies. Those that find none are not read before there is some, in their order. */
export class BodyRoom {
  #bytes = 0;
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = [];

  /** Waits until there is room for the body of a request. It is given back by `letGo`, and at the latest when the answer is over. */
  async enter(request: FastifyRequest, { raw }: FastifyReply): Promise<void> {
    const bytes = lengthOf(request);
    if (bytes <= bounds.smallBodyBytes) return;
    const { promise, resolve: enter } = Promise.withResolvers<undefined>();
    const place = {
      bytes,
      enter: () => {
        enter(undefined);
      },
    };
    let isOver = false;
    const leave = () => {
      if (isOver) return;
      isOver = true;
      raw.off('close', leave);
      socket.off('close', leave);
      const at = this.#waiting.indexOf(place);
      if (at < 0) this.#bytes -= bytes;
      else this.#waiting.splice(at, 1);
      enter(undefined);
      this.#next();
    };
    leases.set(request, leave);
    // An answer that waits behind another one on its connection hears nothing of the end of that.
    const { socket } = request.raw;
    raw.once('close', leave);
    socket.once('close', leave);
    this.#waiting.push(place);
    this.#next();
    await promise;
  }

  #next(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || (this.#bytes > 0 && this.#bytes + first.bytes > bounds.bodiesBytes)) return;
      this.#waiting.shift();
      this.#bytes += first.bytes;
      first.enter();
    }
  }
}

/** Bytes, as many as it says: a longer one is cut off, and one that does not say it may have as many as any. */
function lengthOf({ headers }: FastifyRequest): number {
  if (headers['transfer-encoding'] !== undefined) return bounds.bodyBytes;
  return Math.min(Number(headers['content-length'] ?? 0) || 0, bounds.bodyBytes);
}

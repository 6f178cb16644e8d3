import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { Gathered } from '../../../util/gathered.ts';
import { bounds } from '../bounds.ts';
import { Refusal } from '../refusal.ts';

/** Characters of JSON. */
const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
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
  const { bodyBesides, bodyDepth } = bounds;
  let [besides, commas, beginnings, depth] = [0, 0, 0, 0];
  let inText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (inText) {
      if (byte === backslash) at++;
      else if (byte === quote) inText = false;
      continue;
    }
    if (++besides > bodyBesides)
      throw new Refusal(413, `the body has more than ${mebibytes(bodyBesides)} outside of texts`);
    if (byte === quote) inText = true;
    else if (byte === comma) commas++;
    else if (byte === openList || byte === openObject) {
      beginnings++;
      depth++;
    } else if (byte === closeList || byte === closeObject) depth--;
    if (depth > bodyDepth) throw tooDeep();
    if (Math.max(commas, beginnings) > mostValues) throw tooMany(mostValues);
  }
}

function tooDeep(): Refusal {
  return new Refusal(400, `the body has more than ${bounds.bodyDepth} lists and objects within each other`);
}

function tooMany(values: number): Refusal {
  return new Refusal(
    413,
    `the body has more than ${values} values: ask for fewer Pods at once, or give a Pod fewer`,
  );
}

/**
 * Those parts of the value in a body that a schema names, without a check of them. All else is passed over and never made: a Pod has labels
 * by the hundred thousand if its user likes.
 * @param values that are made, so many at most
 * @throws Refusal
 */
export function partsOf(body: unknown, schema: TSchema, values: number): unknown {
  if (!(body instanceof Uint8Array) || body.length === 0) return undefined;
  try {
    return new Parts(Buffer.from(body.buffer, body.byteOffset, body.length), values).whole(schema);
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refusal(400, 'the body is no JSON');
    throw error;
  }
}

/**
 * The same of a list that comes in pieces, and is never held as a whole: one element is, and the parts of those before it. All Pods of a node,
 * with all that their users gave them, are longer than a body may be that is.
 */
export class PartsOfList {
  readonly #schema: Naming;
  readonly #most: number;
  #made: unknown[] | undefined;
  #isWhole = false;
  /** Of the element that has begun. */
  readonly #element = new Gathered();
  #values = 1;
  /** Bytes of the parts that were made. */
  #kept = 0;
  #depth = 0;
  #inText = false;
  #isEscaped = false;
  #failure: Refusal | undefined;

  constructor(schema: TSchema, values: number) {
    this.#schema = schema;
    this.#most = values;
  }

  /** A mistake is told by `value`: the caller sends the rest all the same, and hears nothing before. */
  feed(piece: Buffer): void {
    if (this.#failure !== undefined) return;
    try {
      this.#take(piece);
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof Refusal)) throw error;
      this.#failure = error instanceof Refusal ? error : new Refusal(400, 'the body is no JSON');
      this.#element.take();
      this.#made = undefined;
    }
  }

  /** Once all has come. @throws Refusal */
  value(): unknown {
    if (this.#failure !== undefined) throw this.#failure;
    const rest = this.#element.take();
    if (this.#made === undefined) return partsOf(rest, this.#schema, this.#most);
    if (!this.#isWhole || !isBlank(rest)) throw new Refusal(400, 'the body is no JSON');
    return this.#made;
  }

  #take(piece: Buffer): void {
    let [depth, inText, isEscaped] = [this.#depth, this.#inText, this.#isEscaped];
    let from = 0;
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at];
      if (isEscaped) isEscaped = false;
      else if (inText) {
        if (byte === backslash) isEscaped = true;
        else if (byte === quote) inText = false;
      } else if (byte === quote) inText = true;
      else if (byte === openList || byte === openObject) {
        if (++depth > bounds.bodyDepth) throw tooDeep();
        if (depth > 1 || byte === openObject || this.#made !== undefined) continue;
        this.#hold(piece.subarray(from, at));
        if (!isBlank(this.#element.take())) throw new SyntaxError();
        this.#made = [];
        from = at + 1;
      } else if (byte === closeList || byte === closeObject) {
        if (--depth !== 0 || this.#made === undefined || this.#isWhole) continue;
        if (byte !== closeList) throw new SyntaxError();
        this.#end(piece.subarray(from, at), true);
        from = at + 1;
      } else if (byte === comma && depth === 1 && this.#made !== undefined && !this.#isWhole) {
        this.#end(piece.subarray(from, at), false);
        from = at + 1;
      }
    }
    [this.#depth, this.#inText, this.#isEscaped] = [depth, inText, isEscaped];
    this.#hold(piece.subarray(from));
  }

  /** An element is there. */
  #end(piece: Buffer, isLast: boolean): void {
    this.#hold(piece);
    const element = this.#element.take();
    this.#isWhole = isLast;
    const made = this.#made ?? [];
    if (isLast && made.length === 0 && isBlank(element)) return;
    const parts = new Parts(element, this.#most, this.#values);
    made.push(parts.whole(this.#schema.items ?? {}));
    this.#values = parts.values;
    this.#kept += parts.bytes;
  }

  #hold(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#element.add(piece);
    if (this.#element.length + this.#kept > bounds.bodyBytes)
      throw new Refusal(413, `a Pod, or what is read of all, is longer than ${mebibytes(bounds.bodyBytes)}`);
  }
}

function isBlank(json: Buffer): boolean {
  return json.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
}

/**
 * Reads the body of a request that is such a list.
 * @param values that are made, so many at most
 * @throws Refusal where it is too long, or breaks off
 */
export async function listIn(
  { headers }: FastifyRequest,
  body: IncomingMessage,
  schema: TSchema,
  values: number,
): Promise<PartsOfList> {
  const list = new PartsOfList(schema, values);
  const tooLong = new Refusal(413, `the body is longer than ${mebibytes(bounds.statusBytes)}`);
  if (Number(headers['content-length']) > bounds.statusBytes) throw tooLong;
  let bytes = 0;
  try {
    // The answer goes out on the connection that would be closed otherwise.
    for await (const piece of body.iterator({ destroyOnReturn: false })) {
      bytes += (piece as Buffer).length;
      if (bytes > bounds.statusBytes) throw tooLong;
      list.feed(piece as Buffer);
    }
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal(400, 'the body broke off');
  }
  return list;
}

export function mebibytes(bytes: number): string {
  return `${bytes / 1024 / 1024} MiB`;
}

/** The keywords by which a schema names parts. */
interface Naming {
  readonly properties?: Readonly<Record<string, Naming>>;
  readonly items?: Naming;
}

class Parts {
  readonly #json: Buffer;
  readonly #most: number;
  #values: number;
  #bytes = 0;
  #at = 0;

  /** @param made so many were made before, and count */
  constructor(json: Buffer, most: number, made = 0) {
    this.#json = json;
    this.#most = most;
    this.#values = made;
  }

  /** How many were made, with those before. */
  get values(): number {
    return this.#values;
  }

  /** Of the texts that were made. */
  get bytes(): number {
    return this.#bytes;
  }

  whole(schema: Naming): unknown {
    const value = this.#value(schema);
    if (this.#next() !== undefined) throw new SyntaxError();
    return value;
  }

  #value({ properties, items }: Naming): unknown {
    if (++this.#values > this.#most) throw tooMany(this.#most);
    const first = this.#next();
    if (first === openObject && properties !== undefined) return this.#object(properties);
    if (first === openList && items !== undefined) return this.#list(items);
    const text = this.#passed();
    // The check of the schema has to see no more of it than what it is.
    if (first === openObject) return {};
    if (first === openList) return [];
    this.#bytes += text.length;
    return JSON.parse(text.toString('utf8')) as unknown;
  }

  #object(properties: Readonly<Record<string, Naming>>): unknown {
    const made: Record<string, unknown> = {};
    this.#each(closeObject, () => {
      if (this.#next() !== quote) throw new SyntaxError();
      const key = this.#key(properties);
      if (this.#next() !== colon) throw new SyntaxError();
      this.#at++;
      const schema = key === undefined ? undefined : properties[key];
      if (key === undefined || schema === undefined) this.#passed();
      else made[key] = this.#value(schema);
    });
    return made;
  }

  /** The name of a part; undefined: any other key. No text is made of one that has no length of these, since there may be very many. */
  #key(properties: Readonly<Record<string, Naming>>): string | undefined {
    const text = this.#passed();
    const isPlain = Object.keys(properties).some((name) => name.length + 2 === text.length);
    const isEscaped = text.includes(backslash);
    if (!isPlain && !isEscaped) return undefined;
    const key = isEscaped
      ? String(JSON.parse(text.toString('utf8')))
      : text.toString('utf8', 1, text.length - 1);
    return Object.hasOwn(properties, key) ? key : undefined;
  }

  #list(items: Naming): unknown {
    const made: unknown[] = [];
    this.#each(closeList, () => made.push(this.#value(items)));
    return made;
  }

  /** What stands between commas, up to the end of a list or object. */
  #each(end: number, take: () => void): void {
    this.#at++;
    if (this.#next() !== end)
      for (;;) {
        take();
        const next = this.#next();
        if (next === end) break;
        if (next !== comma) throw new SyntaxError();
        this.#at++;
      }
    this.#at++;
  }

  /** The byte that follows after blanks; undefined: none. */
  #next(): number | undefined {
    for (;;) {
      const byte = this.#json[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
      this.#at++;
    }
  }

  /** Goes on behind a value. @returns its text */
  #passed(): Buffer {
    this.#next();
    const [json, from] = [this.#json, this.#at];
    let depth = 0;
    let inText = false;
    let at = from;
    for (; at < json.length; at++) {
      const byte = json[at];
      if (inText) {
        if (byte === backslash) at++;
        else if (byte === quote) inText = false;
        if (inText || depth > 0) continue;
        at++;
        break;
      }
      if (byte === quote) inText = true;
      else if (byte === openList || byte === openObject) {
        if (++depth > bounds.bodyDepth) throw tooDeep();
      } else if (byte === closeList || byte === closeObject) {
        // The end of what is around a number or a word.
        if (depth === 0) break;
        depth--;
        if (depth > 0) continue;
        at++;
        break;
      } else if (depth === 0 && (byte === comma || byte === colon)) break;
    }
    if (at === from || at > json.length || depth > 0 || inText) throw new SyntaxError();
    this.#at = at;
    return json.subarray(from, at);
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

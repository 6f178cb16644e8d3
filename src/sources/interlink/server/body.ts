import { bounds } from '../bounds.ts';
import { Refusal } from '../refusal.ts';

/** Characters of JSON. */
const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The value in the body of a request; undefined: the request has no body. @throws Refusal */
export function jsonOf(body: unknown): unknown {
  if (!(body instanceof Uint8Array) || body.length === 0) return undefined;
  requireShape(body);
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
function requireShape(json: Uint8Array): void {
  const { bodyValues, bodyDepth } = bounds;
  let [values, depth] = [0, 0];
  let inText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (inText) {
      if (byte === backslash) at++;
      else if (byte === quote) inText = false;
      continue;
    }
    if (byte === quote) inText = true;
    else if (byte === comma) values++;
    else if (byte === openList || byte === openObject) depth++;
    else if (byte === closeList || byte === closeObject) depth--;
    if (depth > bodyDepth)
      throw new Refusal(400, `the body has more than ${bodyDepth} lists and objects within each other`);
    if (values > bodyValues)
      throw new Refusal(413, `the body has more than ${bodyValues} values: ask for fewer Pods at once`);
  }
}

import { Gathered } from '../../util/gathered.ts';

/** A line longer than any object an API server takes (3 MB) is not from one. Bytes. */
const longestLine = 8 * 1024 * 1024;

const newline = 0x0a;

/**
 * The lines of a stream. It drops text after the last newline: the beginning of a line whose rest was lost. It does not
 * copy a line that came in one piece before it decodes it.
 * @throws RangeError for a line without end.
 */
export async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncIterable<string> {
  const begun = new Gathered();
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      if (begun.length === 0) yield chunk.toString('utf8', from, end);
      else {
        // Decoded as a whole: a character may be cut by the border of two pieces.
        begun.add(chunk.subarray(from, end));
        yield begun.take().toString('utf8');
      }
      from = end + 1;
    }
    if (from === chunk.length) continue;
    begun.add(chunk.subarray(from));
    if (begun.length > longestLine) throw new RangeError(`a line of more than ${longestLine} bytes`);
  }
}

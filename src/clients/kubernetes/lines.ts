/** A line longer than any object an API server takes (3 MB) is not from one. Bytes. */
const longestLine = 8 * 1024 * 1024;

const newline = 0x0a;

/**
 * The lines of a stream. It drops text after the last newline: the beginning of a line whose rest was lost. It does not
 * copy a line that came in one piece before it decodes it.
 * @throws RangeError for a line without end.
 */
export async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncIterable<string> {
  let pieces: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      if (pieces.length === 0) yield chunk.toString('utf8', from, end);
      else {
        // Decoded as a whole: a character may be cut by the border of two pieces.
        pieces.push(chunk.subarray(from, end));
        yield Buffer.concat(pieces).toString('utf8');
        pieces = [];
        length = 0;
      }
      from = end + 1;
    }
    if (from === chunk.length) continue;
    pieces.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > longestLine) throw new RangeError(`a line of more than ${longestLine} bytes`);
  }
}

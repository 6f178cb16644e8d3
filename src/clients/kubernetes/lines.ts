import { type Clock, givingWay } from '../../util/clock.ts';
import { Gathered } from '../../util/gathered.ts';

/** Bytes of one answer, and of one line of a watch. An API server takes no object above 3 MB, and etcd by itself none above 1.5 MB. */
export const largestAnswer = 8 * 1024 * 1024;

const newline = 0x0a;

/**
 * The lines of a stream. It drops text after the last newline: the beginning of a line whose rest was lost. It does not
 * copy a line that came in one piece before it decodes it. Others have their turn between two lines, by the time that their reader took: what came at
 * once may have thousands of short ones, or several long ones.
 * @throws RangeError for a line without end.
 */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  clock: Pick<Clock, 'monotonic'>,
): AsyncIterable<string> {
  const giveWay = givingWay(clock);
  const begun = new Gathered();
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      await giveWay();
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
    if (begun.length > largestAnswer) throw new RangeError(`a line of more than ${largestAnswer} bytes`);
  }
}

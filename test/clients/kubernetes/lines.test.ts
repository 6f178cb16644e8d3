import { expect } from 'chai';
import fc from 'fast-check';
import { linesOf } from '../../../src/clients/kubernetes/lines.ts';

async function* pieces(buffer: Buffer, borders: readonly number[]): AsyncGenerator<Buffer> {
  const at = [0, ...borders.map((border) => border % (buffer.length + 1)), buffer.length].sort(
    (a, b) => a - b,
  );
  for (let i = 1; i < at.length; i++) yield buffer.subarray(at[i - 1], at[i]);
}

async function collect(chunks: AsyncIterable<Buffer>): Promise<string[]> {
  const found: string[] = [];
  for await (const line of linesOf(chunks)) found.push(line);
  return found;
}

describe('lines of a stream', () => {
  it('are the same however the stream is cut into pieces', async () => {
    const line = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' '));
    await fc.assert(
      fc.asyncProperty(fc.array(line), fc.array(fc.nat()), async (lines, borders) => {
        const buffer = Buffer.from(lines.map((one) => `${one}\n`).join(''));
        expect(await collect(pieces(buffer, borders))).to.deep.equal(lines);
      }),
    );
  });

  it('are whole: what a broken connection left of one is thrown away', async () => {
    const stream = Buffer.from('{"a":1}\n{"b":');
    expect(await collect(pieces(stream, [3, 9]))).to.deep.equal(['{"a":1}']);
    expect(await collect(pieces(Buffer.from('no newline'), [4]))).to.deep.equal([]);
  });
});

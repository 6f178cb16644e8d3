import { expect } from 'chai';
import fc from 'fast-check';
import { Body } from '../../../src/clients/kubernetes/body.ts';
import { linesOf } from '../../../src/clients/kubernetes/lines.ts';
import { type Clock, systemClock } from '../../../src/util/clock.ts';

async function* pieces(buffer: Buffer, borders: readonly number[]): AsyncGenerator<Buffer> {
  const at = [0, ...borders.map((border) => border % (buffer.length + 1)), buffer.length].sort(
    (a, b) => a - b,
  );
  for (let i = 1; i < at.length; i++) yield buffer.subarray(at[i - 1], at[i]);
}

async function collect(chunks: AsyncIterable<Buffer>): Promise<string[]> {
  const found: string[] = [];
  for await (const line of linesOf(chunks, systemClock)) found.push(line);
  return found;
}

/** The most of these in one turn, where each takes 1 ms. */
async function mostInATurn(read: (clock: Clock) => AsyncIterable<unknown>): Promise<number> {
  let [all, inTurn, most] = [0, 0, 0];
  let isOver = false;
  const turn = () => {
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  for await (const one of read({ ...systemClock, monotonic: () => all })) {
    if (one !== undefined) all++;
    most = Math.max(most, ++inTurn);
  }
  isOver = true;
  expect(all).to.equal(5000);
  return most;
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

  it('hole 8: leave others their turn, however many come at once', async () => {
    const stream = Buffer.from('{}\n'.repeat(5000));
    expect(await mostInATurn((clock) => linesOf(pieces(stream, []), clock))).to.be.at.most(21);
  });

  it('hole 8: so do the pieces of a stream', async () => {
    const read = (clock: Clock) => {
      const body = new Body(clock, Infinity);
      for (let many = 0; many < 5000; many++) body.put(Buffer.from('x'));
      body.close();
      return body.read(new AbortController().signal);
    };
    expect(await mostInATurn(read)).to.be.at.most(21);
  });
});

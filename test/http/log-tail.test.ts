import { expect } from 'chai';
import fc from 'fast-check';
import { LogTails } from '../../src/http/log-tail.ts';
import type { WorkerRecord } from '../../src/store/rows.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { workerOf } from '../support/samples.ts';

const worker = workerOf(1) as WorkerRecord;

describe('the end of a log', () => {
  async function tail(pieces: readonly Uint8Array[], maxBytes: number) {
    const reader = {
      async *read() {
        yield* pieces;
      },
    };
    const tails = new LogTails({ clock: new ManualClock(), logsOf: async () => reader });
    const request = { stream: 'stdout', tail: 10, maxBytes, timeout: 1000 } as const;
    return tails.read(worker, request, new AbortController().signal);
  }

  it('is the whole of a short one, however it comes', async () => {
    const { bytes, cut } = await tail([Buffer.from('one\ntw'), Buffer.from('o\n')], 8);
    expect([bytes.toString(), cut]).to.deep.equal(['one\ntwo\n', false]);
    expect(await tail([Buffer.alloc(0), Buffer.from('a')], 1)).to.deep.equal({
      bytes: Buffer.from('a'),
      cut: false,
    });
    expect(await tail([], 8)).to.deep.equal({ bytes: Buffer.alloc(0), cut: false });
  });

  it('the end of a log begins with a whole line', async () => {
    const { bytes, cut } = await tail([Buffer.from('one\ntwo\nthree\n')], 9);
    expect([bytes.toString(), cut]).to.deep.equal(['three\n', true]);
  });

  it('the end of a log that is one endless line begins with a whole character', async () => {
    const { bytes, cut } = await tail([Buffer.from('€'.repeat(100))], 10);
    expect([bytes.toString(), cut]).to.deep.equal(['€€€', true]);
  });

  it('is never longer than it may be, and always an end of the log', async () => {
    const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', '\n', 'ü'), maxLength: 20 }), {
      maxLength: 10,
    });
    await fc.assert(
      fc.asyncProperty(pieces, fc.integer({ min: 1, max: 60 }), async (texts, maxBytes) => {
        const all = Buffer.from(texts.join(''));
        const { bytes, cut } = await tail(
          texts.map((text) => Buffer.from(text)),
          maxBytes,
        );
        expect(bytes.length).to.be.at.most(maxBytes);
        expect(all.subarray(all.length - bytes.length)).to.deep.equal(bytes);
        expect(cut).to.equal(bytes.length < all.length || all.length > maxBytes);
      }),
    );
  });
});

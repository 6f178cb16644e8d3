import { expect } from 'chai';
import { parseMarked } from '../../src/plugins/local/worker-files.ts';
import { markedWorker } from '../../src/worker/marked.ts';
import { workerOf } from '../support/samples.ts';

const grouped = workerOf(7, { groupId: 'g', payloadId: '7' });

describe('the mark of a worker', () => {
  it('is read with and without group and payload, which earlier versions did not write, and of imported jobs', () => {
    for (const worker of [workerOf(7), grouped, workerOf(7, { attempt: 0 })])
      expect(markedWorker(JSON.stringify(worker))).to.deep.equal(worker);
  });

  it('is not believed where either is no text', () => {
    for (const wrong of [{ groupId: 7 }, { payloadId: null }, { payloadId: {} }])
      expect(markedWorker(JSON.stringify({ ...workerOf(7), ...wrong }))).to.equal(undefined);
  });

  it('hole 7: is not believed where a row of it would be refused by a database', () => {
    const { origin, requirements } = workerOf(7);
    const odd: readonly object[] = [
      ...[0.5, -1, 1e30, 10_001, null].map((attempt) => ({ attempt })),
      ...[1.5, 0, 1e30].map((workerId) => ({ workerId })),
      ...[1.5, -1, 1e30, '0'].map((index) => ({ origin: { ...origin, index } })),
      ...['a\0b', 'u'.repeat(200_000), 'ä'.repeat(401), '\ud800', 7].flatMap((text) => [
        { queue: text },
        { computingSite: text },
        { origin: { ...origin, uid: text } },
        { origin: { ...origin, kind: text } },
      ]),
      ...['a\0b', 'u'.repeat(200_000)].map((jobType) => ({ requirements: { ...requirements, jobType } })),
      ...[-1, 1e30, null].map((nCore) => ({ requirements: { ...requirements, nCore } })),
      { groupId: 'a\0b' },
    ];
    for (const wrong of odd)
      expect(
        markedWorker(JSON.stringify({ ...workerOf(7), ...wrong })),
        JSON.stringify(wrong).slice(0, 80),
      ).to.equal(undefined);
  });

  it('hole 8: is not believed where no source could have its origin', () => {
    const { origin } = workerOf(7);
    const odd = [
      ...['', 'u'.repeat(513), 'u'.repeat(600)].map((uid) => ({ ...origin, uid })),
      { ...origin, kind: '' },
    ];
    for (const one of odd)
      expect(markedWorker(JSON.stringify({ ...workerOf(7), origin: one }))).to.equal(undefined);
    const longest = workerOf(7, { origin: { ...origin, uid: 'u'.repeat(512) } });
    expect(markedWorker(JSON.stringify(longest))).to.deep.equal(longest);
  });

  it('keeps both on the local backend, and nothing else that may stand there', () => {
    const content = JSON.stringify({
      factory: 'f',
      cpu: 1,
      memory: 1,
      worker: { ...grouped, payload: { env: {} } },
    });
    expect(parseMarked(content, 7)).to.deep.include({
      ok: true,
      value: { factory: 'f', cpu: 1, memory: 1, worker: grouped },
    });
  });
});

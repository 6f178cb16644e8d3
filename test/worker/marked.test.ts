import { expect } from 'chai';
import { parseMarked } from '../../src/plugins/local/worker-files.ts';
import { markedWorker } from '../../src/worker/marked.ts';
import { workerOf } from '../support/samples.ts';

const grouped = workerOf(7, { groupId: 'g', payloadId: '7' });

describe('the mark of a worker', () => {
  it('is read with and without group and payload: earlier versions wrote none', () => {
    for (const worker of [workerOf(7), grouped])
      expect(markedWorker(JSON.stringify(worker))).to.deep.equal(worker);
  });

  it('is not believed where either is no text', () => {
    for (const wrong of [{ groupId: 7 }, { payloadId: null }, { payloadId: {} }])
      expect(markedWorker(JSON.stringify({ ...workerOf(7), ...wrong }))).to.equal(undefined);
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

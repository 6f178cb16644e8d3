import { expect } from 'chai';
import fc from 'fast-check';
import {
  identityOf,
  isLabelValue,
  isOurs,
  labelOf,
  marksOf,
  queueLabel,
  workerIdOf,
} from '../../../src/plugins/kubernetes/marks.ts';
import type { Worker } from '../../../src/worker/worker.ts';
import { textsOfRows, workerOf } from '../../support/samples.ts';

const worker = workerOf(17, { queue: 'CERN/PROD mcore', accessPoint: '/work/17' });
const metadata = { name: worker.name, ...marksOf(worker, 'thresher-1') };

describe('the marks of a Job', () => {
  it('make the whole worker again', () => {
    expect(identityOf(metadata)).to.deep.equal(worker);
    expect(workerIdOf(metadata)).to.equal(17);
    expect(metadata.annotations[queueLabel]).to.equal('CERN/PROD mcore');
  });

  it('make any worker again, with labels that Kubernetes takes', () => {
    const factories = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 99_999_999_999 }),
        textsOfRows,
        factories,
        (id, queue, factory) => {
          // The uid of a counted worker's origin is its queue, and no origin has an empty one.
          const origin = { kind: 'fill', uid: `Q${queue}`, index: id };
          const one = workerOf(id, { queue, computingSite: queue, origin });
          const marks = marksOf(one, factory);
          expect(Object.values(marks.labels).filter((value) => !isLabelValue(value))).to.deep.equal([]);
          expect(identityOf({ name: one.name, ...marks })).to.deep.equal(one);
          expect(isOurs(marks, factory)).to.equal(true);
          expect(isOurs(marks, `${factory}x`)).to.equal(false);
        },
      ),
    );
  });

  it('name group and payload, and have nothing of the payload itself', () => {
    const grouped = { ...worker, groupId: 'g 1', payloadId: '17' };
    const payload = { env: { KEY: 'of the payload' } };
    const marks = marksOf({ ...grouped, payload } as Worker, 'thresher-1');
    expect(identityOf({ name: worker.name, ...marks })).to.deep.equal(grouped);
  });

  it('do not keep the handle, which is not known when they are made', () => {
    const handled = { ...worker, handle: { batchID: 'b', uid: 'u' } };
    expect(marksOf(handled, 'thresher-1')).to.deep.equal(marksOf(worker, 'thresher-1'));
  });

  it('say nothing of a copy that somebody made under another name', () => {
    expect(identityOf({ ...metadata, name: 'copy' })).to.equal(undefined);
    expect(identityOf({ ...metadata, labels: { ...metadata.labels, 'thresher/worker-id': '18' } })).to.equal(
      undefined,
    );
  });

  for (const [what, text] of [
    ['no JSON', '{'],
    ['a list', '[]'],
    ['null', 'null'],
    ['a worker without requirements', JSON.stringify({ ...worker, requirements: undefined })],
    [
      'a worker with cores in quotes',
      JSON.stringify({ ...worker, requirements: { ...worker.requirements, nCore: '1' } }),
    ],
    ['a worker without origin', JSON.stringify({ ...worker, origin: 'fill' })],
  ] as const) {
    it(`say nothing where the annotation is ${what}`, () => {
      expect(identityOf({ ...metadata, annotations: { 'thresher/worker': text } })).to.equal(undefined);
    });
  }

  it('are not ours without labels, and no worker without an id', () => {
    expect(isOurs(undefined, 'thresher-1')).to.equal(false);
    expect(isOurs({ labels: null }, 'thresher-1')).to.equal(false);
    for (const id of ['', '0', '-1', '1.5', '1e3', '999999999999999999']) {
      expect(workerIdOf({ labels: { 'thresher/worker-id': id } })).to.equal(undefined);
    }
  });
});

describe("a label's value", () => {
  it('is the text itself where Kubernetes takes it', () => {
    for (const text of ['', 'a', 'CERN_PROD-1.x', 'a'.repeat(63)]) expect(labelOf(text)).to.equal(text);
  });

  it('is always one that Kubernetes takes, also when it is encoded twice', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const label = labelOf(text);
        return isLabelValue(label) && label.length <= 63 && labelOf(label) === label;
      }),
    );
  });

  it('keeps texts apart that differ only in what a label cannot hold, or far behind', () => {
    const long = 'q'.repeat(80);
    const texts = ['A/B', 'A B', 'A-B', '_A', 'A_', '/', '//', `${long}1`, `${long}2`, 'é', 'è'];
    expect(new Set(texts.map(labelOf)).size).to.equal(texts.length);
    expect(labelOf('A/B')).to.match(/^A-B-[0-9a-f]{8}$/);
  });
});

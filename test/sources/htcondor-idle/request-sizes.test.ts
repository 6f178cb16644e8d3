import { expect } from 'chai';
import { concurrencyOf, requestOf } from '../../../src/sources/htcondor-idle/request-sizes.ts';

const asked = (amounts: Record<string, number | undefined>) => requestOf(new Map(Object.entries(amounts)));

describe('requests as a startd rounds them', () => {
  // What `condor_q -jobads FILE -af 'quantize(X,{STEP})'` of HTCondor 23.9 printed.
  for (const [resource, amount, rounded] of [
    ['cpus', 0, 1],
    ['cpus', -5, 1],
    ['cpus', 0.5, 1],
    ['cpus', 1.5, 2],
    ['cpus', 8, 8],
    ['memory', -5, 128],
    ['memory', 128, 128],
    ['memory', 128.5, 256],
    ['memory', 129, 256],
    ['disk', 0, 1024],
    ['disk', 1025, 2048],
  ] as const)
    it(`rounds ${amount} of ${resource} to ${rounded}`, () => {
      expect(asked({ [resource]: amount }).request.get(resource)).to.equal(rounded);
    });

  it('keeps what the job says beside it, and a core: a slot without one left starts no job', () => {
    const { exact } = asked({ cpus: 0, memory: 2000, disk: -1 });
    expect(Object.fromEntries(exact)).to.deep.equal({ cpus: 1, memory: 2000, disk: 0 });
  });

  it('gives a job without any request one core, and the least memory and disk', () => {
    expect(Object.fromEntries(asked({}).request)).to.deep.equal({ cpus: 1, memory: 128, disk: 1024 });
  });

  it('takes what is no number for missing, and leaves Infinity: no machine has so much', () => {
    const { request } = asked({ cpus: NaN, memory: undefined, disk: Infinity });
    expect(Object.fromEntries(request)).to.deep.equal({ cpus: 1, memory: 128, disk: Infinity });
  });

  it('rounds no other resource, and leaves out those of which a job asks for none', () => {
    const { request, exact } = asked({ gpus: 2, licenses: 0.5, fpgas: 0, tapes: -1 });
    for (const one of [request, exact])
      expect([...one].filter(([name]) => !['cpus', 'memory', 'disk'].includes(name))).to.deep.equal([
        ['gpus', 2],
        ['licenses', 0.5],
      ]);
  });
});

describe('concurrency limits of a job', () => {
  for (const [text, limits] of [
    ['license', { license: 1 }],
    ['License,LARGE.Render:2', { license: 1, 'large.render': 2 }],
    ['a b', { a: 1, b: 1 }],
    ['a:0.5', { a: 0.5 }],
    ['a:0, b:-3, c:x', { a: 1, b: 1, c: 1 }],
    ['a, a:2', { a: 3 }],
    ['a:1e999', { a: Infinity }],
    ['', {}],
    ['9a, a.b.c, a-b, ok', { ok: 1 }],
  ] as const)
    it(`reads ${JSON.stringify(text)}`, () => {
      expect(Object.fromEntries(concurrencyOf(text))).to.deep.equal(limits);
    });
});

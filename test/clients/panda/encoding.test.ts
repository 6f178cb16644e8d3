import { expect } from 'chai';
import fc from 'fast-check';
import { pandaDatetime, readPandaTime } from '../../../src/clients/panda/times.ts';
import { fit, fitAll } from '../../../src/clients/panda/widths.ts';

const bytes = (text: string) => new TextEncoder().encode(text).length;

describe('texts for columns of the PanDA server', () => {
  it('leaves a text that fits as it is', () => {
    expect(fit('x'.repeat(80), 80)).to.equal('x'.repeat(80));
  });

  it('cuts a longer one and shows that it goes on', () => {
    expect(fit('x'.repeat(81), 80)).to.equal(`${'x'.repeat(77)}...`);
  });

  it('cuts no character in two, and none outside the basic plane', () => {
    expect(fit('é'.repeat(50), 80)).to.equal(`${'é'.repeat(38)}...`);
    expect(fit('🌾'.repeat(50), 80)).to.equal(`${'🌾'.repeat(19)}...`);
  });

  it('any text fits by characters and by bytes, without NUL and half characters', () => {
    const anything = fc.string({ unit: 'binary', maxLength: 300 });
    fc.assert(
      fc.property(anything, fc.integer({ min: 10, max: 250 }), (text, width) => {
        const fitted = fit(text, width);
        expect(fitted.length).to.be.at.most(width);
        expect(bytes(fitted)).to.be.at.most(width);
        expect(fitted).not.to.include('\u0000');
        expect(fitted.isWellFormed()).to.equal(true);
      }),
    );
  });

  it('keeps what stands around a NUL apart: two pieces of a secret do not become one', () => {
    expect(fit('Zx9kQ2mW7v\u0000T4pL8sR1bN', 80)).to.equal('Zx9kQ2mW7v T4pL8sR1bN');
  });

  it('cuts the texts of a record that have a width, and nothing else', () => {
    const fields = { a: 'x'.repeat(20), b: 'x'.repeat(20), n: 123_456 };
    expect(fitAll(fields, { a: 10, n: 3 })).to.deep.equal({ ...fields, a: 'xxxxxxx...' });
  });
});

describe('times of the PanDA server', () => {
  const at = Date.UTC(2026, 10, 21, 8, 40, 5, 7);

  it('writes naive UTC with microseconds', () => {
    expect(pandaDatetime(at)).to.equal('datetime/2026-11-21 08:40:05.007000');
  });

  it('reads each form that the server writes, as UTC where no zone is named', () => {
    const forms = [
      '2026-11-21T08:40:05.007123',
      '2026-11-21 08:40:05.007',
      '2026-11-21T09:40:05.007+01:00',
      { __datetime__: '2026-11-21T08:40:05.007000' },
    ];
    for (const form of forms) expect(readPandaTime(form), JSON.stringify(form)).to.equal(at);
  });

  it('reads nothing of what is no time', () => {
    for (const wrong of ['', 'yesterday', '2026-11-21', 5, null, { time: 'x' }])
      expect(readPandaTime(wrong)).to.equal(undefined);
  });
});

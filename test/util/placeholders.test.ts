import { expect } from 'chai';
import fc from 'fast-check';
import { fillPlaceholders, unknownPlaceholders } from '../../src/util/placeholders.ts';

describe('placeholders', () => {
  const values = { workerID: 1234567, computingSite: 'CERN_PROD', empty: '' };

  for (const [text, filled] of [
    ['/data/${workerID}', '/data/1234567'],
    ['${computingSite}/${workerID}/${computingSite}', 'CERN_PROD/1234567/CERN_PROD'],
    ['[${empty}]', '[]'],
    ['${_workerID_3.2}', '45'],
    ['${_workerID_1.0}', '67'],
    ['${_workerID_0}', '7'],
    ['${_workerID_6.7}', '10'],
    ['${_workerID_9.8.7}', '000'],
    ['$${workerID}', '${workerID}'],
    ['$$${workerID}', '$${workerID}'],
    ['$${nothing}', '${nothing}'],
    ['${nothing} ${}', '${nothing} ${}'],
    ['${HOME:-/tmp} $HOME $(id)', '${HOME:-/tmp} $HOME $(id)'],
    ['${workerID', '${workerID'],
  ] as const) {
    it(`make "${filled}" of "${text}"`, () => {
      expect(fillPlaceholders(text, values)).to.equal(filled);
    });
  }

  it('take missing digits of a short id for 0', () => {
    expect(fillPlaceholders('${_workerID_3.2}/${_workerID_1.0}', { workerID: 5 })).to.equal('00/05');
  });

  it('leave names alone that only JavaScript knows', () => {
    const text = '${constructor} ${toString} ${__proto__}';
    expect(fillPlaceholders(text, values)).to.equal(text);
  });

  it('a placeholder inside a value that was filled in stays as it is', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('$', '{', '}', 'workerID', '&', '`', "'", '"', '\n') }),
        (value) => {
          expect(fillPlaceholders('a ${name} b', { name: value, workerID: 1 })).to.equal(`a ${value} b`);
        },
      ),
    );
  });

  it('put a value where it belongs and change nothing around it, whatever is in it', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.stringMatching(/^[^${}]*$/),
        fc.stringMatching(/^[^${}]*$/),
        (value, a, b) => {
          const filled = JSON.parse(
            JSON.stringify([fillPlaceholders(`${a}\${name}${b}`, { name: value })]),
          ) as string[];
          expect(filled).to.deep.equal([a + value + b]);
        },
      ),
    );
  });

  it('are told from those that do not exist', () => {
    const text = '${workerID} ${_workerID_3.2} $${escaped} ${worker} ${_workerID_x} ${}';
    expect(unknownPlaceholders(text, new Set(['workerID']))).to.deep.equal(['worker', '_workerID_x', '']);
  });

  it('unknown placeholders are just those that filling leaves as written', () => {
    const name = fc.constantFrom('workerID', 'queueName', 'nothing', '_workerID_1.0', '_workerID_', 'a b');
    fc.assert(
      fc.property(fc.array(name), (names) => {
        const text = names.map((one) => `<\${${one}}>`).join('');
        const known = { workerID: 7, queueName: 'Q' };
        const unknown = unknownPlaceholders(text, new Set(Object.keys(known)));
        const left = [...fillPlaceholders(text, known).matchAll(/\$\{([^}]*)\}/g)].map(([, one]) => one);
        expect(unknown).to.deep.equal(left);
      }),
    );
  });
});

import { expect } from 'chai';
import { isTrouble } from '../../src/daemon/every-code.ts';

describe('a reason why no more workers are submitted', () => {
  for (const [code, trouble] of [
    ['queue-limit', false],
    ['demand-none', false],
    ['paused', false],
    ['preflight', true],
    ['reload-refused', true],
    ['kubernetes-forbidden', true],
    ['of-a-plugin-of-others', true],
    ['toString', true],
  ] as const) {
    it(`${code} is ${trouble ? 'a fault that an operator has to fix' : 'in the course of things'}`, () => {
      expect(isTrouble({ code, message: '' })).to.equal(trouble);
    });
  }
});

import { expect } from 'chai';
import { problemsOf } from '../../src/plugins/contracts/checks.ts';
import type { DefinitionProblem } from '../../src/plugins/contracts/definition-problem.ts';

describe('the check of a plugin', () => {
  const short = async (check: () => unknown) =>
    (await problemsOf('Mine', check as () => readonly DefinitionProblem[], 20)).map(({ code, message }) => [
      code,
      message,
    ]);

  it('finds its mistakes, or none', async () => {
    const mistake: DefinitionProblem = { pointer: '/a', code: 'wrong-type', message: 'a is wrong' };
    expect(await problemsOf('Mine', () => [mistake])).to.deep.equal([mistake]);
    expect(await problemsOf('Mine', () => undefined)).to.deep.equal([]);
  });

  for (const [what, check, expected] of [
    [
      'throws',
      () => {
        throw new Error('boom');
      },
      ['plugin-failed', 'the check of Mine failed: boom'],
    ],
    ['rejects', () => Promise.reject(new Error('boom')), ['plugin-failed', 'the check of Mine failed: boom']],
    [
      'hangs',
      () => new Promise(() => undefined),
      ['plugin-timeout', 'the check of Mine did not come back within 0.02 s'],
    ],
    ['returns no list', () => 'all well', ['plugin-failed', 'the check of Mine failed: it returned no list']],
  ] as const)
    it(`that ${what} is a mistake of its own section`, async () => {
      expect(await short(check)).to.deep.equal([expected]);
    });
});

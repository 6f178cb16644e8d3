import { expect } from 'chai';
import { isOlder } from '../../../src/clients/kubernetes/versions.ts';

describe('a version of an API server', () => {
  const cases: [version: string | undefined, than: string | undefined, older: boolean][] = [
    ['5', '6', true],
    ['6', '6', false],
    ['7', '6', false],
    ['9', '10', true],
    // Beyond what a double holds.
    ['9007199254740992', '9007199254740993', true],
    // Of what is no integer only equality is known.
    ['abc', 'abd', false],
    ['5', 'abd', false],
    ['', '6', false],
    ['-1', '6', false],
    [undefined, '6', false],
    ['5', undefined, false],
  ];
  for (const [version, than, older] of cases)
    it(`${String(version)} is ${older ? 'older' : 'not older'} than ${String(than)}`, () => {
      expect(isOlder(version, than)).to.equal(older);
    });
});

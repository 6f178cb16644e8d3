import { expect } from 'chai';
import { withoutEnd } from '../../src/util/without-end.ts';

describe('a text without the end of it that consists of given characters', () => {
  it('keeps these characters elsewhere', () => {
    expect(withoutEnd('//a//b///', '/')).to.equal('//a//b');
    expect(withoutEnd('-.a.-b.-.', '.-')).to.equal('-.a.-b');
  });

  it('is the text itself when it ends otherwise, and empty when it has no other character', () => {
    expect(withoutEnd('/a', '/')).to.equal('/a');
    expect(withoutEnd('', '/')).to.equal('');
    expect(withoutEnd('///', '/')).to.equal('');
  });
});

import { expect } from 'chai';
import { keepTogether } from '../../../../src/plugins/htcondor/place/groups.ts';

/** "aab" is three workers, two of group a; "." has no group. */
const groups = (text: string) => Array.from(text).map((letter) => (letter === '.' ? undefined : letter));
const places = (text: string) => Array.from(text);

describe('groups of workers and the places of a batch', () => {
  const together = (shares: string, of: string, random = 0) =>
    keepTogether(places(shares), groups(of), () => random).join('');

  it('changes nothing where no worker has a group', () => {
    expect(together('XXYY', '....')).to.equal('XXYY');
  });

  it('keeps each group at one place, and the shares as they were where that can be', () => {
    expect(together('XXXYYY', 'aaabbb')).to.equal('XXXYYY');
    expect(together('XXXYYY', 'ababab')).to.equal('XYXYXY');
    expect(together('XXXYYY', '..aa..', 0.9)).to.equal('XXYYXY');
  });

  it('tears no group apart that is larger than every share', () => {
    expect(together('XXYY', 'aaaa', 0)).to.equal('XXXX');
    expect(together('XXYY', 'aaaa', 0.9)).to.equal('YYYY');
    expect(together('XXYYZZ', 'aaa...', 0)).to.equal('XXXYYZ');
  });

  it('gives a group to each place as often as its share says', () => {
    const chances = Array.from({ length: 100 }, (_, index) => index / 100);
    const chosen = chances.map((chance) => together('XXXXXXXXYY', 'aa........', chance)[0]);
    expect(chosen.filter((place) => place === 'X')).to.have.length(80);
  });

  it('gives each worker a place, whatever the groups are', () => {
    const letters = 'abcd.';
    let seed = 1;
    const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    for (let round = 0; round < 500; round++) {
      const count = 1 + Math.floor(random() * 30);
      const of = Array.from({ length: count }, () => letters[Math.floor(random() * letters.length)]).join('');
      const shares = Array.from({ length: count }, () => 'XYZ'[Math.floor(random() * 3)] ?? 'X');
      const got = keepTogether(shares, groups(of), random);
      expect(got).to.have.length(count);
      for (const letter of 'abcd') {
        const own = new Set(got.filter((_, index) => of[index] === letter));
        expect(own.size, `${of} at ${got.join('')}`).to.be.at.most(1);
      }
    }
  });

  it('leaves places as they are where some workers have none', () => {
    expect(together('', 'aab')).to.equal('');
  });
});

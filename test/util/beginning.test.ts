import { expect } from 'chai';
import { beginningFromOutside, beginningOfOwn, brief } from '../../src/util/beginning.ts';
import { fromOutside, rememberSecret } from '../../src/util/own-secrets.ts';
import { makeJwt } from '../support/credentials.ts';
import { charactersLookedAt, maskedCharacters } from '../support/masked-characters.ts';

describe('the beginning of a text from outside', () => {
  it('hole 8: is masked in what is shown and a little more, however long the text is', async () => {
    const work = () => beginningFromOutside('secret=$('.repeat(100_000), 500);
    expect(await maskedCharacters(work)).to.be.within(1, 2500);
  });

  it('hole 3: shows nothing of a secret that is longer than what is looked at, whatever its form', () => {
    const long = 'hunter7'.repeat(1000);
    for (const text of [
      ...[`eyJ${long}`, `eyJhbGciOiJIUzI1.${long}`, `https://user:${long}`, `password=${long}`],
      ...[`{"password": "${long}`, `{'password': '${long}`, `run --token "${long}`, `run --token '${long}`],
      ...[
        `'say': 'run "it"''{"password": "${long}`,
        `password = "it's ${long}`,
        `-----BEGIN KEY-----\n${long}`,
      ],
    ]) {
      expect(beginningFromOutside(text, 100), text.slice(0, 30)).to.not.include('hunter7');
      expect(beginningFromOutside(text, 100)).to.match(/\(hidden\).*\.\.\.$/s);
    }
  });

  it('says that a secret of ours is hidden which is longer than what is looked at, and shows what stands before it', () => {
    // Each token of one issuer has the head of the others: a word that begins like this is hidden whole.
    rememberSecret(makeJwt({ sub: 'pilot' }));
    const token = `eyJhbGciOiJIUzI1.${'hunter7'.repeat(1000)}`;
    for (const show of [fromOutside, (text: string) => beginningFromOutside(text, 100)]) {
      expect(show(token)).to.equal('(hidden)...');
      expect(show(`refused: ${token}`)).to.equal('refused: (hidden)...');
    }
  });

  it('hole 3: shows nothing of a secret of ours that begins behind another one, just before what is looked at ends', () => {
    const secret = 'another-own-secret-76543210-fedcba';
    rememberSecret(secret);
    rememberSecret(makeJwt({ sub: 'pilot' }));
    for (const [read, show] of [
      [2500, fromOutside],
      [600, (text: string) => beginningFromOutside(text, 100)],
    ] as const)
      for (let seen = 1; seen < secret.length; seen++) {
        const token = `eyJhbGciOiJIUzI1.${'x'.repeat(read)}`.slice(0, read - 1 - seen);
        expect(show(`${token} ${secret} ${'x '.repeat(read)}`), `${seen} characters`).to.match(
          /^\(hidden\)( \(hidden\))?\.\.\.$/,
        );
      }
  });

  it('hole 8: of words of thresher is looked at as far as it is shown and a little more, and has no piece of a secret', async () => {
    const secret = 'own-words-0123456789-abcdef';
    rememberSecret(secret);
    expect(await charactersLookedAt(() => beginningOfOwn('words '.repeat(100_000), 300))).to.be.within(
      1,
      1000,
    );
    for (let at = 250; at <= 300; at++) {
      const long = `${'.'.repeat(at)} ${secret} ${'.'.repeat(1000)}`;
      for (const text of [long, long.slice(0, 400)])
        expect(beginningOfOwn(text, 300)).to.have.length.at.most(300).and.not.include('own-');
    }
    expect(beginningOfOwn(`a ${secret} b`, 300)).to.equal('a (hidden) b');
    expect(beginningOfOwn('plain', 3)).to.equal('pla');
  });

  it('shows a short text whole, without secrets of ours', () => {
    const secret = 'own-secret-0123456789-abcdef';
    rememberSecret(secret);
    expect(beginningFromOutside('plain', 5)).to.equal('plain');
    expect(beginningFromOutside(`a ${secret} b`, 100)).to.equal('a (hidden) b');
    expect(beginningFromOutside(`${'x '.repeat(40)}${secret}${' y'.repeat(1000)}`, 100)).to.not.include(
      'own-',
    );
    expect([brief('abcdef', 6), brief('abcdefg', 6)]).to.deep.equal(['abcdef', 'abc...']);
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import { readCredential } from '../../../src/clients/credentials/credential.ts';
import { readToken } from '../../../src/clients/credentials/jwt.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { makeJwt } from '../../support/credentials.ts';

function complaint(text: string): string {
  try {
    readToken(text, 'the token');
  } catch (error) {
    expect((error as ThresherError).code).to.equal('credential-wrong');
    return (error as ThresherError).message;
  }
  throw new Error('it was accepted');
}

describe('reading a token', () => {
  it('knows whose it is, for whom, for what and how long', () => {
    const claims = { sub: 'robot', iss: 'https://iam.example.org/', iat: 1000, nbf: 2000, exp: 3000 };
    const token = makeJwt({
      ...claims,
      scope: 'compute.read  compute.create',
      aud: 'https://ce.example.org',
    });
    expect(readToken(`${token}\n`, 'x')).to.deep.include({
      subject: 'robot',
      issuer: 'https://iam.example.org/',
      notBefore: 2_000_000,
      expiresAt: 3_000_000,
      scopes: ['compute.read', 'compute.create'],
      audience: ['https://ce.example.org'],
    });
    expect(readCredential(Buffer.from(token), 'x')).to.include({ kind: 'token', subject: 'robot' });
  });

  it('takes one without an end, with several audiences and no beginning: its making is none', () => {
    const found = readToken(makeJwt({ sub: 'a@pool', iat: 7, aud: ['b', 'c'] }), 'x');
    expect(found).to.deep.include({
      expiresAt: undefined,
      notBefore: undefined,
      issuedAt: 7000,
      audience: ['b', 'c'],
    });
    expect(readCredential(Buffer.from(makeJwt({ sub: 'a' })), 'x')).to.not.have.property('expiresAt');
  });

  it('c12: takes one whose claims that are not needed have any form', () => {
    const scope = ['compute.read', 'compute.create compute.cancel', 7];
    const odd = { scope, aud: null, sub: null, iss: 5, iat: 'once', nbf: null, exp: 9 };
    expect(readToken(makeJwt(odd), 'x')).to.deep.include({
      scopes: ['compute.read', 'compute.create', 'compute.cancel'],
      audience: [],
      subject: '',
      issuer: '',
      notBefore: undefined,
      issuedAt: undefined,
      expiresAt: 9000,
    });
    expect(readToken(makeJwt({ scope: null, aud: ['a', null], exp: null }), 'x')).to.deep.include({
      scopes: [],
      audience: ['a'],
      expiresAt: undefined,
    });
  });

  it('a wrong token is reported by its fault, without its content', () => {
    expect(complaint('\n')).to.equal('the token is empty');
    expect(complaint('opaque-token')).to.contain('three parts');
    expect(complaint('a.b.c.d')).to.contain('three parts');
    expect(complaint('a.b c.d')).to.contain('three parts');
    expect(complaint('aaaa.bbbb.cccc')).to.contain('its second part is no JSON');
    expect(complaint(makeJwt({ exp: 'tomorrow', nbf: 'today' }))).to.match(
      /in its claims is (exp, nbf|nbf, exp)$/,
    );
    expect(complaint(makeJwt({ exp: 1e300 }))).to.contain('in its claims is exp');
    const list = makeJwt([] as unknown as Record<string, unknown>);
    expect(complaint(list)).to.contain('in its claims is all of it');
  });

  it('an error about a token never shows a piece of it, however the token is cut or mangled', () => {
    const token = makeJwt({ sub: 'robot', exp: 5, private: 'something that is nobody else’s' });
    fc.assert(
      fc.property(
        fc.nat(token.length),
        fc.nat(token.length),
        fc.string({ unit: 'binary' }),
        (from, to, put) => {
          const mangled = token.slice(0, from) + put + token.slice(to);
          let shown: string;
          try {
            shown = JSON.stringify(readCredential(Buffer.from(mangled), 'the token'));
          } catch (error) {
            expect(error).to.be.instanceOf(ThresherError);
            shown = (error as Error).message;
          }
          for (let at = 0; at + 10 <= token.length; at++)
            if (shown.includes(token.slice(at, at + 10))) throw new Error(`shows it: ${shown}`);
          expect(shown).to.not.contain('something');
        },
      ),
      { numRuns: 500 },
    );
  });
});

import { expect } from 'chai';
import { hidden, withoutSecrets } from '../../../src/config/settings/secrets.ts';

describe('values that are shown', () => {
  for (const key of [
    'password',
    'db_password',
    'clientSecret',
    'client_secret',
    'apiKey',
    'private_key',
    'authToken',
    'auth',
    'Authorization',
  ])
    it(`keep the value of ${key} to themselves`, () => {
      expect(withoutSecrets(key, 'x1')).to.equal(hidden);
      expect(withoutSecrets('submitter', { [key]: ['x1'], other: 1 })).to.deep.equal({
        [key]: hidden,
        other: 1,
      });
    });

  for (const key of [
    'tokenDir',
    'pandaTokenFilename',
    'proxySecretPath',
    'secret_name',
    'keepalive',
    'nCore',
  ])
    it(`show ${key}: a path or a name is no secret`, () => {
      expect(withoutSecrets(key, 'x1')).to.equal('x1');
    });

  it('show no header that lets a request in, whatever its key is, and every switch', () => {
    expect(withoutSecrets('header', ['Bearer zzz', 'basic dTpw', 'bearer'])).to.deep.equal([
      ...[hidden, hidden, 'bearer'],
    ]);
    expect(withoutSecrets('useAuth', true)).to.equal(true);
  });

  it('show a URL without the password in it', () => {
    expect(withoutSecrets('logBaseURL', ['https://user:pa55@host:8443/x'])).to.deep.equal([
      `https://user:${hidden}@host:8443/x`,
    ]);
    expect(withoutSecrets('logBaseURL', 'https://host:8443/x@y')).to.equal('https://host:8443/x@y');
  });

  it('show that a secret is not set', () => {
    expect(withoutSecrets('password', '')).to.equal('');
    expect(withoutSecrets('password', null)).to.equal(null);
  });
});

import { expect } from 'chai';
import { maskSecrets, maskText } from '../../src/util/mask.ts';

describe('what is shown of a secret', () => {
  for (const [what, text, shown] of [
    [
      'a key as PEM',
      'a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b',
      'a (hidden) b',
    ],
    ['a token', 'Bearer eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc-_', 'Bearer (hidden)'],
    ['a password in an address', 'https://me:word@host/x', 'https://(hidden)@host/x'],
    [
      'a variable in submit text',
      "environment = \"SITE=a DB_PASSWORD='it''s me' N=1\"",
      'environment = "SITE=a DB_PASSWORD=(hidden) N=1"',
    ],
  ] as const) {
    it(`of ${what} is (hidden)`, () => {
      expect(maskText(text)).to.equal(shown);
    });
  }

  it('of a variable of a container is (hidden) where its name says so, and its value where it is a place', () => {
    const env = [
      { name: 'API_KEY', value: '12345' },
      { name: 'SITE_TOKEN', value: '/tokens/site' },
      { name: 'PANDA_AUTH_TOKEN', value: 'token' },
      { name: 'proxySecretPath', value: '/proxy/x509' },
      { name: 'proxyContent', valueFrom: { secretKeyRef: { name: 'a', key: 'proxy' } } },
      { name: 'SITE', value: 'CERN' },
    ];
    const [first, ...rest] = env;
    expect(maskSecrets(env)).to.deep.equal([{ ...first, value: '(hidden)' }, ...rest]);
    expect(maskSecrets({ env: { API_KEY: '12345', SITE: 'CERN' } })).to.deep.equal({
      env: { API_KEY: '(hidden)', SITE: 'CERN' },
    });
  });

  it('of a volume of a Secret is its name, by which an operator finds it', () => {
    const volume = { name: 'proxy', secret: { secretName: 'proxy-secret', defaultMode: 256 } };
    expect(maskSecrets(volume)).to.deep.equal(volume);
  });
});

import { expect } from 'chai';
import { hidden, maskText, withoutSecrets } from '../../src/util/secrets.ts';

describe('secrets in a worker as it is shown', () => {
  for (const [what, text, shown] of [
    [
      'a key as PEM',
      'a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b',
      'a (hidden) b',
    ],
    ...['', 'a', 'ab'].map((before) => {
      const text = Buffer.from(`${before}-----BEGIN RSA PRIVATE KEY-----\nMIIabc`).toString('base64');
      return [
        `a key in base64, behind ${before.length} bytes`,
        `{"x":"${text}"}`,
        /^\{"x":"\w{0,3}\(hidden\)"\}$/,
      ] as const;
    }),
    ['a token', 'Bearer eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc-_', 'Bearer (hidden)'],
    [
      'a token behind an encoded blank',
      '?a=Bearer%20eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc-_',
      '?a=Bearer%20(hidden)',
    ],
    ['a token behind a letter', String.raw`a\neyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc-_`, String.raw`a\n(hidden)`],
    [
      'a signed URL',
      'https://h/x?authz=abc&X-Amz-Signature=d&n=1',
      'https://h/x?authz=(hidden)&X-Amz-Signature=(hidden)&n=1',
    ],
    ['a password in an address', 'https://me:word@host/x', 'https://me:(hidden)@host/x'],
    [
      'a variable in submit text',
      "environment = \"SITE=a DB_PASSWORD='it''s me' N=1\"",
      'environment = "SITE=a DB_PASSWORD=(hidden) N=1"',
    ],
    ['an attribute of a job', '+X_PASSWORD = hunter2\nSite = A', '+X_PASSWORD = (hidden)\nSite = A'],
    ['an attribute of several words', '+X_PASSWORD = hunter two', '+X_PASSWORD = (hidden)'],
    ['an attribute in quotes', '+MyToken = "hunter12" ', '+MyToken = (hidden) '],
    ['an attribute with a dot', 'my.api_key = hunter13', 'my.api_key = (hidden)'],
    ['an option', 'run --password hunter7 --site A', 'run --password (hidden) --site A'],
    ['an option with an equals sign', 'run --api-token=hunter7 A', 'run --api-token=(hidden) A'],
    ['an option in quotes', "run -password 'hunter 7' A", 'run -password (hidden) A'],
    ['a header', 'curl -H "Authorization: Bearer abc" x', 'curl -H "Authorization: Bearer (hidden)" x'],
    ['a header of its own', "curl -H 'X-Api-Key: abc' x", "curl -H 'X-Api-Key: (hidden)' x"],
    ['a basic authorization', 'Authorization: basic dTpw', 'Authorization: basic (hidden)'],
    ['JSON in a text', `'{"password": "hunter8", "site": "A"}'`, `'{"password": "(hidden)", "site": "A"}'`],
  ] as const) {
    it(`a secret of ${what} is shown as (hidden)`, () => {
      if (typeof shown === 'string') expect(maskText(text)).to.equal(shown);
      else expect(maskText(text)).to.match(shown);
    });
  }

  // In a time that grew with the square of the length, each of these would take minutes or hours.
  it('hole 8: secrets are looked for in texts of a megabyte, whatever they repeat', () => {
    for (const piece of [
      ...['k', 'x-', 'a.', 'a-', '"a', 'a://', 'a://b:', 'a:b@', 'eyJ', 'aeyJ', 'eyJ-', 'eyJaaaa.'],
      ...['a=', '=', ' ', 'a \t', '--a "', '--a \'"', 'bearer ', 'basic  ', '-----BEGIN A', '"a":', 'x-a: "'],
    ]) {
      const long = piece.repeat(1e6 / piece.length);
      expect(maskText(`${long} password=hunter7`), piece).to.not.include('hunter7');
    }
  });

  it('hole 3: a token is hidden behind a hyphen, and none is seen in what has too few parts', () => {
    const token = 'eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc-_';
    expect(maskText(`a-${token} ${token} (${token})`)).to.equal('a-(hidden) (hidden) ((hidden))');
    for (const plain of ['eyJhbGciOiJIUzI1.eyJzdWIiOiIx', 'eyJa.bbbb.c', 'eyJaaaa.b.c', 'eyJaaa.bbbb.c'])
      expect(maskText(plain)).to.equal(plain);
  });

  for (const shown of [
    'requirements = (TARGET.HasToken =?= True) && (Token == "a")',
    'x509userproxy = /proxies/a.pem',
    'use_scitokens = true',
    '+DirOfToken = "/tokens/site"',
    'run --token /tokens/site --password --verbose',
    'DB_PASSWORD=$(cat /x) API_TOKEN=${TOKEN}',
    'COMPASS=north',
    'DESIGN=4 BIGSIG=1 SIG=TERM',
    'kill --sig TERM',
    'monkeyJungle.example.org keyJournal.backup.tar.gz',
    'PWD=/tmp',
  ])
    it(`a text without a secret is shown as it is: ${shown}`, () => {
      expect(maskText(shown)).to.equal(shown);
    });

  it('a secret in a list of arguments is hidden behind its option', () => {
    const args = ['--password', 'hunter4', '--site', 'A', '--token', '/tokens/site', '--secret'];
    expect(withoutSecrets('args', args)).to.deep.equal(args.with(1, hidden));
  });

  it('a secret of an option inside the value of a variable is hidden', () => {
    expect(withoutSecrets('env', [{ name: 'OPTIONS', value: '--password hunter4' }])).to.deep.equal([
      { name: 'OPTIONS', value: '--password (hidden)' },
    ]);
  });

  it('a variable of a container is hidden if its name tells a secret, and its value is shown if it is a path', () => {
    const env = [
      { name: 'API_KEY', value: '12345' },
      { name: 'SITE_TOKEN', value: '/tokens/site' },
      { name: 'PANDA_AUTH_TOKEN', value: 'token' },
      { name: 'proxySecretPath', value: '/proxy/x509' },
      { name: 'proxyContent', valueFrom: { secretKeyRef: { name: 'a', key: 'proxy' } } },
      { name: 'SITE', value: 'CERN' },
    ];
    const [first, ...rest] = env;
    expect(withoutSecrets('', env)).to.deep.equal([{ ...first, value: '(hidden)' }, ...rest]);
    expect(withoutSecrets('', { env: { API_KEY: '12345', SITE: 'CERN' } })).to.deep.equal({
      env: { API_KEY: '(hidden)', SITE: 'CERN' },
    });
  });

  it('a volume of a Secret shows its name, by which an operator finds it', () => {
    const volume = { name: 'proxy', secret: { secretName: 'proxy-secret', defaultMode: 256 } };
    expect(withoutSecrets('', volume)).to.deep.equal(volume);
  });
});

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
      ...['Bearer (hidden)', 'basic (hidden)', 'bearer'],
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

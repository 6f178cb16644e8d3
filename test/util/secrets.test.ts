import { expect } from 'chai';
import { hidden, maskText, secretArguments, whySecret, withoutSecrets } from '../../src/util/secrets.ts';

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
    ['an option whose value begins as one', 'run --token -aB3_dEf6hIjKlMn A', 'run --token (hidden) A'],
    ['an option whose value has no digits', 'run --token -abcdefghijklmnop A', 'run --token (hidden) A'],
    ['a header', 'curl -H "Authorization: Bearer abc" x', 'curl -H "Authorization: Bearer (hidden)" x'],
    ['a header of its own', "curl -H 'X-Api-Key: abc' x", "curl -H 'X-Api-Key: (hidden)' x"],
    ['a basic authorization', 'Authorization: basic dTpw', 'Authorization: basic (hidden)'],
    [
      'a header of a digest',
      'Authorization: Digest username="u", response="abc"',
      'Authorization: Digest (hidden)',
    ],
    [
      'a signed header in JSON',
      String.raw`"authorization: AWS4-HMAC Credential=\"a\", SignedHeaders=b"`,
      '"authorization: AWS4-HMAC (hidden)"',
    ],
    [
      'a header in an address',
      'h=Authorization%3A%20Bearer%20hunter7',
      'h=Authorization%3A%20Bearer%20(hidden)',
    ],
    ['a long negotiation', 'Negotiate YIIabcdef0123456789 x', 'Negotiate (hidden) x'],
    ['a cookie', 'Cookie: JSESSIONID=hunter7; b="c d" x', 'Cookie: (hidden) x'],
    ['a cookie in JSON', '{"Set-Cookie": ["a=b; Path=/"]}', '{"Set-Cookie": ["(hidden)"]}'],
    ['a line of YAML', '  password: Hunter2Secret9x\n', '  password: (hidden)\n'],
    ['a line of YAML in quotes', 'db_password: "Hunter two 2"', 'db_password: (hidden)'],
    ['a sentence behind a colon', '(token: Hunter2Secret9x).', '(token: (hidden)).'],
    ['a map of Go', 'map[password:Hunter2Secret9x user:x]', 'map[password:(hidden) user:x]'],
    ['a refused value', 'x.password: Invalid value: "Hunter2!"', 'x.password: Invalid value: (hidden)'],
    [
      'an element of XML',
      '<a><db:password x="1">wrong</db:password></a>',
      '<a><db:password x="1">(hidden)</db:password></a>',
    ],
    [
      'an entry of an environment',
      '{"name":"PASSWORD","value":"x y"}',
      '{"name":"PASSWORD","value":(hidden)}',
    ],
    ['an entry in YAML', '- name: API_KEY\n  value: x', '- name: API_KEY\n  value: (hidden)'],
    [
      'an entry of Go',
      '{Name:PASSWORD Value:x ValueFrom:nil}',
      '{Name:PASSWORD Value:(hidden) ValueFrom:nil}',
    ],
    [
      'an entry within the value of another one',
      String.raw`{"name":"a","value":"[{\"name\":\"TOKEN\",\"value\":\"x\"}]"}`,
      String.raw`{"name":"a","value":"[{\"name\":\"TOKEN\",\"value\":(hidden)}]"}`,
    ],
    [
      'an assignment in quotes of a JSON',
      String.raw`{"m":"password=\"hunter 7\" n=1"}`,
      '{"m":"password=(hidden) n=1"}',
    ],
    ['an address in another one', '?next=%3Ftoken%3Dhunter7%26n%3D1', '?next=%3Ftoken%3D(hidden)%26n%3D1'],
    ['JSON in HTML', '{&quot;password&quot;:&quot;a b&quot;}', '{&quot;password&quot;:(hidden)}'],
    ['JSON in an address', '%7B%22token%22%3A%22a%22%7D', '%7B%22token%22%3A(hidden)%7D'],
    ['JSON in a text', `'{"password": "hunter8", "site": "A"}'`, `'{"password": "(hidden)", "site": "A"}'`],
  ] as const) {
    it(`a secret of ${what} is shown as (hidden)`, () => {
      if (typeof shown === 'string') expect(maskText(text)).to.equal(shown);
      else expect(maskText(text)).to.match(shown);
    });
  }

  it('hole 3: a secret of JSON is hidden in JSON within JSON, however deep, and its siblings are shown', () => {
    let said: unknown = { password: 'hun "7" ter', site: 'A', n: { token: 12345, b: [] } };
    for (let depth = 0; depth < 5; depth++) {
      const shown = maskText(JSON.stringify(said));
      expect(shown)
        .to.match(/site\W+A\W/)
        .and.match(/b\\*":\[\]/);
      expect(shown).not.to.match(/hun|ter|12345/);
      said = depth === 4 ? said : { m: JSON.stringify(said) };
    }
  });

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

  it('hole 8: so are names before colons, quotes in quotes, headers, cookies and elements', () => {
    for (const piece of [
      ...[
        'password:',
        'password: ',
        'token: "',
        'token:/a/',
        'token = /a/ ',
        'password=\\"',
        'password:\\"/a/',
      ],
      ...[
        '\\"',
        '\\',
        '\\"a\\":',
        '\\"token\\":\\"',
        '&quot;',
        '%22a',
        'token%3D',
        '<a ',
        '<password>a',
        'name: ',
      ],
      ...[
        '"name":"a","value":"',
        'name: a value: ',
        'cookie: a=',
        'cookie:',
        'cookie:[ ',
        'authorization: a b="',
      ],
      ...['authorization: a b=c,', 'authorization%3A%20', 'authorization\\', 'negotiate a'],
    ]) {
      const long = piece.repeat(2e5 / piece.length);
      expect(maskText(`${long}\n password=hunter7`), piece).to.not.include('hunter7');
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
    'token: expired; password: wrong, secret: not-found-in-namespace (auth: denied)',
    'Error: token: "not valid any more": unauthorized',
    'pulling images/oauth:v1.2.3-4567 and secret:pilots/proxy',
    'password: ${DB_PASSWORD1} token: /run/secrets/token1',
    'Negotiate authentication_methods, and a cookie: it has expired',
    'kind: Pod name: pilot-12345678 key: value-12345678',
    '<token/> is no <password></password>',
    'secret: "atlas-pilot-2" not found; Mounts from secret: kube-api-access-x7k2p (rw)',
    'auth: kubelet1.example.org:10250 unreachable, auth: 10.96.0.1:443: connection refused',
    'token: https://panda.cern.ch:8443/oauth2/token could not be reached',
    'request token: status=401 (token: 2024-05-01T10:00:00Z is its end)',
    'Authorization: Bearer (hidden)',
  ])
    it(`a text without a secret is shown as it is: ${shown}`, () => {
      expect(maskText(shown)).to.equal(shown);
    });

  it('of an element that is cut off is hidden', () => {
    expect(maskText('<a>1</a><password>S3cr3tV4lue')).to.equal('<a>1</a><password>(hidden)');
  });

  it('what may be a word of a sentence keeps no variable from a job', () => {
    for (const value of ['auth:20240501-1', 'oauth2-token:v7.6.0-alpine', '<token>12345678</token>'])
      expect(whySecret('IMAGE', value)).to.equal(undefined);
    expect(maskText('token: abcdefgh1')).to.equal('token: (hidden)');
    expect(whySecret('IMAGE', 'x?token=abcdefgh1')).to.equal('holds a secret beside its name');
  });

  it('an option behind an option is shown, however long its name is, with its value', () => {
    for (const said of [
      ...[
        'run --password --verbose A',
        'run --token -x A',
        'run --password -h',
        'run --token -',
        '--token --',
      ],
      'run --password --enable-long-names=always --keep_all_of_the_files2 A',
    ]) {
      expect(maskText(said)).to.equal(said);
      expect(withoutSecrets('args', said.split(' '))).to.deep.equal(said.split(' '));
      expect(secretArguments(said.split(' '))).to.deep.equal([]);
    }
    const token = '-aB3_dEf6hIjKlMn';
    expect(withoutSecrets('args', ['--token', token])).to.deep.equal(['--token', hidden]);
    expect(secretArguments(['--token', token])).to.deep.equal([token]);
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

import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { observationChange, outcomeFromOutside } from '../../src/agents/ledger/outcomes.ts';
import { failureOf as condorFailure } from '../../src/clients/htcondor/errors.ts';
import { failureOf as kubernetesFailure } from '../../src/clients/kubernetes/errors.ts';
import { outcomeOf } from '../../src/clients/panda/outcome.ts';
import { PandaApi } from '../../src/clients/panda/api.ts';
import { readCommand } from '../../src/sources/panda/commands.ts';
import {
  endFromOutside,
  factsFromOutside,
  fromOutside,
  holdsOwn,
  jsonWithoutOwn,
  rememberArguments,
  rememberEnvironment,
  rememberSecret,
  withoutOwn,
  WithoutOwn,
} from '../../src/util/own-secrets.ts';
import { messageOf, ThresherError, toReason } from '../../src/worker/errors.ts';
import { charactersLookedAt, formsComparedBy } from '../support/masked-characters.ts';

/** Our own, as they are sent: some have a form, and some are any word. */
const secrets: Readonly<Record<string, string>> = {
  'a JWT':
    'eyJhbGciOiJSUzI1NiIsImtpZCI6InNlY3JldCJ9.eyJzdWIiOiJwaWxvdCIsInNjb3BlIjoieCJ9.c2lnbmF0dXJlLW9mLWl0',
  'a token without a form': 'sha256~Qq9vZx81nLmWb7eTtYuIoPaSdFgHjKlZ',
  'a password with signs': 'p&ss "w/rd" %41+=',
  'a short password': 'hunter2hunter2',
};

/** How a server or a program says them again. */
const echoes: Readonly<Record<string, (secret: string) => string>> = {
  bare: (secret) => `invalid value ${secret}`,
  'in a sentence': (secret) => `user "x" sent "${secret}", which has expired`,
  'as a header': (secret) => `Authorization: Bearer ${secret} was refused`,
  'in JSON': (secret) => JSON.stringify({ error: { got: secret } }),
  'as an address': (secret) => `GET /x?a=${encodeURIComponent(secret)}&b=1`,
  'as a form': (secret) => new URLSearchParams({ what: secret }).toString(),
  'as bytes in an address': (secret) => `/x?a=${Buffer.from(secret).toString('base64url')}`,
  'as bytes': (secret) => `Basic ${Buffer.from(secret).toString('base64')}`,
  cut: (secret) => `token ${secret.slice(0, 20)}... is too long`,
  'over and over': (secret) => `${secret}${secret} ${secret}`,
  'far behind': (secret) => `${'x '.repeat(90)}${secret}`,
};

const json = (value: unknown) => JSON.stringify(value);
const asked = { server: 'https://k:6443', method: 'GET', path: '/api' };
const called = { command: 'condor_submit', place: 'schedd a', changes: true };
const { signal } = new AbortController();

/** What an operator sees of an answer with this text, by the place where the text came in. */
const answers: Readonly<Record<string, (text: string) => unknown>> = {
  'PanDA: a refusal': (text) => outcomeOf({ status: 200, body: json({ success: false, message: text }) }),
  'PanDA: HTTP 401': (text) => outcomeOf({ status: 401, body: text }),
  'PanDA: HTTP 403': (text) => outcomeOf({ status: 403, body: `token ${text}` }),
  'PanDA: HTTP 500': (text) => outcomeOf({ status: 500, body: `<html>${text}</html>` }),
  'PanDA: half an answer': (text) => outcomeOf({ status: 200, body: `{"success": tr ${text}` }),
  'PanDA: another form': (text) =>
    new PandaApi({ call: async () => ({ kind: 'ok', data: { [text]: [text] } }) }, 'h').resourceTypes(signal),
  'PanDA: a command': (text) => readCommand({ command_id: 1, command: text, params: {} }),
  'PanDA: parameters': (text) =>
    readCommand({ command_id: 1, command: 'KILL_WORKERS', params: { [text]: text } }),
  'Kubernetes: a Status': (text) =>
    kubernetesFailure(asked, 403, json({ kind: 'Status', message: text, reason: text })),
  'Kubernetes: a proxy': (text) => kubernetesFailure(asked, 502, `<html>${text}</html>`),
  'Kubernetes: an admission': (text) =>
    kubernetesFailure(asked, 400, json({ kind: 'Status', message: `admission webhook "x" denied: ${text}` })),
  'HTCondor: a tool': (text) => condorFailure(called, `ERROR: ${text}`, 'exit status 1'),
  'HTCondor: its log': (text) =>
    condorFailure(called, `11/26/26 10:00:00 SECMAN:2010:${text}`, 'exit status 1'),
  'a worker: its end': (text) =>
    observationChange(
      {
        workerId: 1,
        status: 'failed',
        nativeStatus: 'x',
        observedAt: 1,
        error: { code: 'exit-status', message: text },
        detail: { HoldReason: text, containers: [{ message: text }] },
      },
      false,
    ),
  'a worker: its submission': (text) =>
    outcomeFromOutside({
      kind: 'rejected',
      permanent: true,
      error: { code: 'kubernetes-refused', message: text },
    }),
  'the log': (text) => withoutOwn(json({ message: 'x', error: text })),
};

/** Everything that could be shown of a value, an error among them. */
function shownOf(value: unknown): string {
  if (!(value instanceof Error)) return JSON.stringify(value);
  return `${value.message} ${JSON.stringify(Object.entries(value))}`;
}

describe('words of others', () => {
  it('hole 3: are masked where they are thrown, and those of ours are whole', () => {
    expect(messageOf(new Error('Authorization: Bearer abcdef'))).to.equal('Authorization: Bearer (hidden)');
    expect(messageOf(`password=hunter7 ${'x '.repeat(2500)}`)).to.match(/^password=\(hidden\) (x )+\.\.\.$/);
    expect(toReason(new Error('token=hunter7')).message).to.equal('token=(hidden)');
    const own = 'y'.repeat(5000);
    expect(toReason(new ThresherError('plugin-failed', own)).message).to.equal(own);
  });

  it('hole 3: show no secret of ours that was wrapped into lines', () => {
    const secret = Buffer.from(Array.from({ length: 150 }, (_, at) => (at * 97) % 251)).toString('base64url');
    rememberSecret(secret);
    for (const end of ['\n', '\r\n', '\\n', '\\r\\n', '<br>', '<wbr/>', '\u200b', '\n    '])
      for (const width of [20, 64, 76]) {
        const wrapped = secret.match(new RegExp(`.{1,${width}}`, 'g'))?.join(end) ?? '';
        const shown = fromOutside(`before ${wrapped} after`);
        expect(shown, JSON.stringify([end, width])).to.equal('before (hidden) after');
      }
    expect(fromOutside(`${secret.slice(0, 40)}\nanother line`)).to.equal('(hidden)\nanother line');
  });
});

describe('hole 3: a secret that comes back from outside', () => {
  before(() => {
    for (const secret of Object.values(secrets)) rememberSecret(secret);
  });

  for (const [place, answer] of Object.entries(answers))
    it(`is masked, in each form: ${place}`, async () => {
      for (const [what, secret] of Object.entries(secrets))
        for (const [form, echo] of Object.entries(echoes)) {
          const shown = shownOf(await answer(echo(secret)));
          const forms = [
            ...[secret, encodeURIComponent(secret), new URLSearchParams({ s: secret }).toString().slice(2)],
            ...[JSON.stringify(secret).slice(1, -1), Buffer.from(secret).toString('base64')],
            Buffer.from(secret).toString('base64url'),
          ];
          for (const one of forms) {
            expect(shown, `${what} ${form}`).not.to.include(one);
            // A piece of it helps to guess the rest.
            expect(shown, `${what} ${form}`).not.to.include(one.slice(0, 16));
          }
        }
    });

  for (const [place, answer] of Object.entries(answers))
    it(`is masked where it is cut: ${place}`, async () => {
      const secret = secrets['a token without a form'] ?? '';
      for (let before = 40; before < 2600; before += 7) {
        const shown = shownOf(await answer(`${'x '.repeat(before / 2)}${secret}`));
        expect(shown, `behind ${before} characters`).not.to.include(secret.slice(0, 7));
      }
    });

  it('is masked where it stands directly behind another one', () => {
    const [first, second] = ['Kj#83hf_Lq02mdXZ', 'Vt55:ppQ#lkjhgfd9'];
    for (const secret of [first, second]) rememberSecret(secret);
    for (const said of [first + second, second + first, `${first}${first}${second}`, `a${first}bc${second}d`])
      expect(withoutOwn(`got ${said}`), said).to.equal(
        said.startsWith('a') ? 'got a(hidden)' : 'got (hidden)',
      );
  });

  it('is looked for in a time that grows with the length of the text, in one word of many secrets', () => {
    const secret = secrets['a token without a form'] ?? '';
    expect(withoutOwn(secret.slice(3).repeat(30_000))).to.equal('(hidden)');
  });

  it('is looked for in such a time also in one word of pieces that are too short to tell', () => {
    const head = Buffer.from('{"alg":"HS256","kid":"POOL"}').toString('base64url');
    const [token, long] = [
      `${head}.${randomBytes(60).toString('base64url')}`,
      randomBytes(300).toString('base64url'),
    ];
    for (const secret of [token, long]) rememberSecret(secret);
    for (const piece of [token.slice(4, 17), long.slice(32, 45)]) {
      // Whatever took a time that grows with the square of this would take many minutes.
      const text = `${piece}_`.repeat(1_000_000 / 14);
      expect(withoutOwn(text)).to.equal(text);
      expect(withoutOwn(`${text}${long.slice(32, 80)}`)).to.equal('(hidden)');
    }
  });

  it('is no variable of the environment that reads as a path, an address or a name', () => {
    const names = {
      IMAGE_PULL_SECRET: 'atlas-registry',
      A_AUTH: 'oidc-browser',
      TOK_TOKEN: 'tokens/panda_token',
      PILOT_TOKEN: '/pilot.token',
      X_PASSWORD: 'file:/run/secrets/pw',
      Y_PASSWORD: '/Pilot.password1',
      A_TOKEN: '/Production2024/pilot.token',
      B_TOKEN: 's3://bucket/a-token.jwt',
      C_TOKEN: '{pandaQueue2-token}',
      D_TOKEN: '{site-name}/a.token',
    };
    rememberEnvironment({ ...names, DB_PASSWORD: 'Xq7-Secret-of-DB' });
    for (const word of Object.values(names)) expect(withoutOwn(`got ${word}`)).to.equal(`got ${word}`);
    expect(withoutOwn('got Xq7-Secret-of-DB')).to.equal('got (hidden)');
  });

  it('is a variable of the environment whose password begins as a path does, or is words', () => {
    const passwords = {
      DB_PASSWORD: '/x7Kq9+abQ2vLm81',
      A_TOKEN: '/x7Kq9abQ2vLm8/1tY0ab+c==',
      API_KEY: '/+x7Kq9bQ2v/9bQ2vLm8',
      VAULT_PASSPHRASE: 'correct-horse-battery',
      C_PASS: 'some.words_of-mine',
      B_SECRET: '{x7Kq9abQ2vLm8}!',
      D_PWD: 'file-of_x7Kq9abQ2',
      E_PASSWORD: '/kQz/9x7Kq+abQ2vLm81',
      F_PASSWORD: '"/z7Kq9abQ2vLm8/1tY0ab"',
    };
    rememberEnvironment(passwords);
    for (const [name, word] of Object.entries(passwords))
      expect(withoutOwn(`got ${word}`), name).to.equal('got (hidden)');
  });

  it('is an argument of a program whose password begins as a path does, or is words', () => {
    rememberArguments([
      '--password',
      '/y7Kq9+abQ2vLm81',
      '--passphrase=other-horse-battery',
      '--token',
      '/run/a-token',
    ]);
    for (const word of ['/y7Kq9+abQ2vLm81', 'other-horse-battery'])
      expect(withoutOwn(`got ${word}`)).to.equal('got (hidden)');
    expect(withoutOwn('got /run/a-token')).to.equal('got /run/a-token');
  });

  it('is hidden in JSON that stays JSON: in names, texts and numbers', () => {
    rememberSecret('7391846205');
    const value = [{ id: 7391846205, 'a 7391846205': ['7391846205', 5, null, true, { of: 'x "y"' }] }];
    expect(JSON.parse(jsonWithoutOwn(value))).to.deep.equal([
      { id: '(hidden)', 'a (hidden)': ['(hidden)', 5, null, true, { of: 'x "y"' }] },
    ]);
  });

  it('is masked by its form where it is none of ours', () => {
    const key = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----';
    const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyIn0.AbCdEf';
    for (const secret of [key, jwt]) {
      expect(fromOutside(`x ${secret} y`)).to.equal('x (hidden) y');
      expect(factsFromOutside({ a: [`x ${secret} y`, 1, null] })).to.deep.equal({
        a: ['x (hidden) y', 1, null],
      });
    }
    expect(fromOutside('https://u:pass@host/')).to.equal('https://u:(hidden)@host/');
    for (const said of [
      'api_key=0123456789abcdef01',
      'pwd=hunter2hunter2',
      'pass=hunter2hunter2',
      'auth=0123456789abcdef01',
      '--api-key 0123456789abcdef01',
      '{"apiKey":"0123456789abcdef01"}',
      'X-Api-Key: 0123456789abcdef01',
      'db_credentials=0123456789abcdef01',
    ]) {
      expect(fromOutside(said), said).to.include('(hidden)');
      expect(factsFromOutside(said)).to.equal(fromOutside(said));
    }
  });

  it('is masked as other programs write it, and whole where a text is cut to its end', () => {
    const secret = `p/ss&w<rd>"ä'${'x'.repeat(8)}`;
    rememberSecret(secret);
    const inJson = JSON.stringify(secret);
    for (const said of [
      inJson.replaceAll('/', '\\/'),
      inJson.replace('&', '\\u0026').replace('<', '\\u003c').replace('>', '\\u003e'),
      inJson.replace('ä', '\\u00e4'),
      `p/ss&amp;w&lt;rd&gt;"ä'xxxxxxxx`,
      `p/ss&amp;w&lt;rd&gt;&quot;ä'xxxxxxxx`,
      `p/ss&amp;w&lt;rd&gt;&#34;ä&#39;xxxxxxxx`,
    ])
      expect(fromOutside(`got ${said}`), said).not.to.match(/xxx|p.?\/ss/);
    rememberSecret('correct horse battery staple');
    const end = 'y'.repeat(1990);
    expect(endFromOutside(`correct horse battery staple ${end}`, 3000)).not.to.match(/horse|battery|staple/);
  });

  it('is masked whole where it begins as another one does: tokens of one issuer have one head', () => {
    const token = (claims: string, end: string) =>
      `eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYTEifQ.${Buffer.from(claims).toString('base64url')}.${end.repeat(12)}`;
    const [first, second, foreign] = [
      token('{"n":1}', 'AbC'),
      token('{"n":2}', 'dEf'),
      token('{"n":3}', 'GhI'),
    ];
    for (const one of [first, second]) rememberSecret(one, 'the issuer');
    for (const one of [first, second, foreign])
      for (const text of [`token ${one} is over`, `Bearer ${one}`, JSON.stringify({ got: one })]) {
        const [, claims = '', end = ''] = one.split('.');
        for (const show of [fromOutside, withoutOwn, (said: string) => String(factsFromOutside(said))])
          for (const piece of [claims, end, end.slice(0, 12)]) expect(show(text)).not.to.include(piece);
      }
    rememberSecret('correct-horse-battery/sta+ple"99');
    for (const text of [
      encodeURIComponent('correct-horse-battery/sta+ple"99'),
      '["correct-horse-battery/sta+ple\\"99"]',
    ])
      expect(fromOutside(text)).not.to.match(/99|ple/);
  });

  it('is masked without its first characters, by its end alone, in lines, and in the bytes of a header', () => {
    const part = (at: number) => Buffer.from(`{"part":${at},"of":"a token"}`).toString('base64url');
    const token = `eyJhbGciOiJSUzI1NiJ9.${[1, 2, 3, 4, 5, 6].map(part).join('')}.SigSigSigHk39dLmQzR7tYwBn`;
    const opaque = 'q8Zr3Lw0pX7yTn5VbK2mHsJ4dGfE9cUa1QoIiRx6';
    for (const secret of [token, opaque]) {
      rememberSecret(secret);
      const lines = secret.match(/.{1,76}/g) ?? [];
      for (const said of [
        ...[1, 2, 4, 8].map((cut) => secret.slice(cut)),
        secret.slice(-60),
        secret.slice(5, -5),
        ...['" + "', '\\\n', '=\n', '\n| ', '\n> ', '\\\\n'].map((join) => lines.join(join)),
        ...['Bearer ', 'user:', 'x'].map((head) => Buffer.from(`${head}${secret}`).toString('base64')),
      ])
        expect(fromOutside(`bad token ${said}`), said).to.not.match(/[\w-]{17}/);
    }
    expect(fromOutside(`got x${opaque.slice(1)}?`), 'one character is another').to.equal('got (hidden)?');
    expect(withoutOwn(`key=${opaque.slice(9)}`)).to.equal('key=(hidden)');
  });

  it('is masked by any 16 characters of it, and by any 44 of a long one, wherever they are cut out', () => {
    for (const [length, fewest] of [
      [17, 16],
      [40, 16],
      [61, 16],
      [256, 16],
      [1000, 44],
    ] as const) {
      const secret = randomBytes(length).toString('base64url').slice(0, length);
      rememberSecret(secret);
      for (let at = 0; at + fewest <= length; at++) {
        const piece = secret.slice(at, at + fewest);
        expect(withoutOwn(`got "${piece}"`), `${length} from ${at}`).to.equal('got "(hidden)"');
      }
      // Fewer may stand in any text.
      const short = secret.slice(1, 16);
      expect(withoutOwn(`got "${short}"`)).to.equal(`got "${short}"`);
    }
  });

  it('leaves no end of itself where a form would end within it', () => {
    const odd = ['p&ss "w/rd" %41+=xyz', 'Tr0ub4,dor&3xtraLong', 'pass@word:with/signs;more'];
    for (const secret of odd) {
      rememberSecret(secret);
      for (const text of [
        `Authorization: Bearer ${secret}`,
        `password=${secret}`,
        `"password": "${secret}"`,
        `https://user:${secret}@host/`,
        `--token ${secret}`,
      ])
        for (const show of [fromOutside, (said: string) => String(factsFromOutside(said))])
          expect(show(text), text).not.to.include(secret.slice(-6));
    }
  });

  it('in what HTCondor says of a job is masked by its form, too', () => {
    const reason =
      'Error from starter: https://svc:Secret1234@host/f failed, Authorization: Basic c3ZjOlNlY3JldA==';
    expect(JSON.stringify(factsFromOutside({ HoldReason: reason }))).not.to.match(/Secret1234|c3ZjOlNl/);
  });

  it('is remembered for ever where it is not renewed, and of renewed ones the last', () => {
    const fixed = 'static-client-secret-1234';
    rememberSecret(fixed);
    for (let at = 0; at < 500; at++) rememberSecret(`renewed-token-${at}-${'x'.repeat(20)}`, 'somewhere');
    expect(fromOutside(`invalid client ${fixed}`)).to.equal('invalid client (hidden)');
    expect(withoutOwn('renewed-token-499-xx')).to.equal('(hidden)');
  });

  it('is the last one again when it is used again, and counts where it stood long before', () => {
    const used = `still-used-token-${'y'.repeat(20)}`;
    for (let at = 0; at < 100; at++) {
      rememberSecret(used, 'two logins');
      rememberSecret(`other-token-${at}-${'z'.repeat(20)}`, 'two logins');
    }
    expect(withoutOwn(`Bearer ${used}`)).to.equal('Bearer (hidden)');
  });

  it('of two places is masked, by its middle too, until neither has it, however often the other one was renewed', () => {
    const opaque = () => randomBytes(60).toString('base64url');
    for (const renewals of [2, 20, 60]) {
      const [shared, lasting] = [opaque(), opaque()];
      const [here, there] = [`here ${renewals}`, `there ${renewals}`];
      rememberSecret(shared, here);
      rememberSecret(shared, there);
      rememberSecret(lasting);
      rememberSecret(lasting, there);
      for (let at = 0; at < renewals; at++) rememberSecret(opaque(), there);
      // It is read again for each request.
      rememberSecret(shared, here);
      for (const secret of [shared, lasting])
        for (const said of [secret, secret.slice(12, -12)])
          expect(withoutOwn(`bad token ${said}`), `${renewals} renewals`).to.equal('bad token (hidden)');
      for (let at = 0; at < 60; at++) for (const place of [here, there]) rememberSecret(opaque(), place);
      expect(withoutOwn(`bad token ${shared}`)).to.equal(`bad token ${shared}`);
      expect(withoutOwn(`bad token ${lasting}`)).to.equal('bad token (hidden)');
    }
  });

  it('leaves nothing of itself in the end of a longer text', () => {
    const long = `token-of-a-plugin-${'k'.repeat(1200)}`;
    rememberSecret(long);
    expect(endFromOutside(`401 for Bearer ${long}`, 300)).to.equal('401 for Bearer (hidden)');
    expect(endFromOutside(`${'k'.repeat(2500)} is refused\n`, 300)).to.equal('is refused');
    expect(endFromOutside(`${'words '.repeat(1000)}the last ones`, 13)).to.equal('the last ones');
    expect(endFromOutside('k'.repeat(2500), 300)).to.equal('');
    expect(withoutOwn(`a row of ${'k'.repeat(40)}`)).to.equal(`a row of ${'k'.repeat(40)}`);
  });

  it('of others leaves nothing of itself in the end of a longer text, in whose middle it is cut', () => {
    const lines = Array.from({ length: 80 }, (_, at) => `${at}`.padStart(4, 'k').repeat(16)).join('\n');
    const pem = `-----BEGIN RSA PRIVATE KEY-----\n${lines}\n-----END RSA PRIVATE KEY-----`;
    const token = `eyJhbGciOiJSUzI1NiJ9.${'p'.repeat(3000)}.${'s'.repeat(300)}`;
    const jwt = token.replaceAll(/.{64}/g, '$&\n');
    for (const secret of [pem, lines, `${lines.slice(700)}\n-----END RSA PRIVATE KEY-----`, jwt])
      expect(endFromOutside(`debug: loaded\n${secret}\nerror: it is refused`, 500)).to.match(
        /^[a-z: \n]*(\(hidden\)\s+)?error: it is refused$/,
      );
  });

  it('that commands a slot of HTCondor is masked by its form', () => {
    const claim =
      '<128.1.2.3:9618?addrs=x&sock=startd_1_a>#1795994797#110#[Integrity="YES";Encryption="YES";]';
    const key = '6829e68fdc0a7b976371';
    for (const said of [claim, claim.replaceAll('"', '\\"'), '<a>#1795994797#1#'])
      for (const show of [fromOutside, (text: string) => String(factsFromOutside(text))]) {
        expect(show(`held: ${said}${key}`))
          .to.contain('#(hidden)')
          .and.not.contain(key.slice(0, 8));
        expect(show(`PublicClaimId = "${said.replace(/\[.*/, '')}..."`)).to.not.contain('hidden');
      }
  });

  it('is no name among the facts of a worker either', () => {
    rememberSecret('static-client-secret-1234');
    expect(factsFromOutside({ 'x static-client-secret-1234': 1 })).to.deep.equal({ 'x (hidden)': 1 });
  });

  it('costs little, however long and odd the words are', () => {
    const pieces = [
      '-eyJ',
      'x-',
      'a.',
      'a',
      '-----BEGIN A',
      'http://a:',
      'static-client-secret-1234 ',
      '(hidden)',
      'a=',
      '"',
    ];
    for (const piece of pieces) {
      // Whatever took a time that grows with the square of this would take many minutes.
      const text = piece.repeat(Math.ceil(1_000_000 / piece.length));
      expect(fromOutside(text).length, piece).to.be.lessThan(3000);
      const { reason } = factsFromOutside({ reason: text }) as { readonly reason: string };
      expect(reason.length, piece).to.be.at.most(text.length);
      expect(withoutOwn(text).length, piece).to.be.at.most(text.length);
    }
  });

  it('of others is masked by its form also where its end lies far behind the cut', () => {
    const value = randomBytes(900).toString('base64url');
    const jwt = `eyJhbGciOiJSUzI1NiJ9.${Buffer.from(`{"n":"${value}"}`).toString('base64url')}.${value}`;
    const forms = [
      ...[`{"token": "${value}"}`, `--password "${value}"`, `password="${value}"`, `password = ${value}`],
      ...[`https://user:${value}@host/`, `Bearer ${value}`, jwt],
    ];
    for (const form of forms)
      for (let at = 1400; at < 2100; at += 7) {
        const shown = fromOutside(`${'w '.repeat(1100).slice(0, at)} ${form} ${'w '.repeat(2000)}`);
        expect(shown, `${form.slice(0, 20)} at ${at}`).not.to.match(/[\w-]{25}/);
        expect(shown.length).to.be.within(1300, 2003);
      }
    const words = 'battery staple, '.repeat(150);
    for (const form of [
      `password="${words}"`,
      ...[0, 1, 2, 3].map((at) => `password="${'b'.repeat(at)}${String.raw`\\battery `.repeat(300)}"`),
      `{"password": "${words}"}`,
      `https://u:${'battery,'.repeat(300)}@h/`,
    ])
      for (const before of [
        '',
        `-----BEGIN PRIVATE KEY-----\n${'A'.repeat(1900)}\n-----END PRIVATE KEY-----\n`,
      ])
        expect(fromOutside(`${before}a ${form} b`), form).not.to.include('battery');
    for (const long of ['x'.repeat(5000), 'https://host/path|'.repeat(300), '日本語'.repeat(2000)])
      expect(fromOutside(long)).to.equal(`${long.slice(0, 2000)}...`);
    const key = (length: number) =>
      `-----BEGIN PRIVATE KEY-----\n${'A'.repeat(length)}\n-----END PRIVATE KEY-----\n`;
    expect(fromOutside(`${key(2600)}disk full`)).to.equal('(hidden)...');
    expect(fromOutside(`${key(2400)}disk full`)).to.equal('(hidden)\ndisk full...');
  });

  it('leaves other words as they are, and short ones are no secrets', () => {
    for (const word of ['abc', 'thresher', 'postgresql', 'short-1']) rememberSecret(word);
    expect(fromOutside('thresher cannot reach postgresql: short-1')).to.equal(
      'thresher cannot reach postgresql: short-1',
    );
    const said = 'jobs.batch "abc" is forbidden: User "u" cannot list resource "jobs" in the namespace "abc"';
    expect(fromOutside(said)).to.equal(said);
    expect(factsFromOutside({ HoldReason: said, code: 3 })).to.deep.equal({ HoldReason: said, code: 3 });
  });
});

describe('the words of one that is shown again and again', () => {
  it('are looked at once, until a secret comes or goes, and have no secret of ours then', async () => {
    const [first, second] = ['shown-often-first-012345', 'shown-often-second-54321'];
    rememberSecret(first, 'shown often');
    const words = new WithoutOwn();
    const text = `${first} and ${second} ${'words '.repeat(600)}`;
    expect(words.of(text)).to.match(/^\(hidden\) and shown-often-second/);
    expect(await charactersLookedAt(() => words.of(text))).to.equal(0);
    expect(words.of('plain')).to.equal('plain');
    expect(await charactersLookedAt(() => words.of(text))).to.equal(0);
    rememberSecret(second, 'shown often too');
    expect(words.of(text)).to.match(/^\(hidden\) and \(hidden\) words/);
    // The same secret again changes nothing.
    rememberSecret(second, 'shown often too');
    expect(await charactersLookedAt(() => words.of(text))).to.equal(0);
  });

  it('are kept no longer than they are many', () => {
    const words = new WithoutOwn();
    for (let at = 0; at < 1000; at++) expect(words.of(`${at}${'x'.repeat(1000)}`)).to.have.length.above(1000);
    expect(words.of('0')).to.equal('0');
  });
});

describe('the tokens of one issuer', () => {
  const head = Buffer.from('{"kid":"rsa1","alg":"RS256"}').toString('base64url');
  /** Below 256 characters, of which any 16 tell, or longer. */
  const tokenOf = (place: string, signature = 36) => {
    const claims = `{"iss":"https://auth.example.org/","aud":"${place}","jti":"${randomBytes(12).toString('hex')}"}`;
    return `${head}.${Buffer.from(claims).toString('base64url')}.${randomBytes(signature).toString('base64url')}`;
  };
  const renewed = (issuer: string, from: number, to: number, signature?: number) =>
    Array.from({ length: to - from }, (_, index) => {
      const place = `${issuer}-ce${from + index}:9619`;
      const tokens = Array.from({ length: 20 }, () => tokenOf(place, signature));
      for (const token of tokens) rememberSecret(token, place);
      return tokens;
    });

  it('are as many as they may be: a text, or the next one, is compared with few of them', async () => {
    const costs: Record<string, number[]> = {};
    const [last] = renewed('count', 0, 1, 120);
    const token = last?.at(-1) ?? '';
    for (const [from, to] of [
      [1, 10],
      [10, 100],
      [100, 500],
    ] as const) {
      renewed('count', from, to, 120);
      const texts = [13, 16, head.length, 60, 120].map((length) => token.slice(0, length));
      for (const text of [...texts, `${head}.${head}`, token, token.slice(20), `${token.slice(0, 64)}\n`])
        for (const end of [' ', '', '.', '\n'])
          (costs[`${text.slice(0, 70)} ${text.length} ${end}`] ??= []).push(
            await formsComparedBy(() => withoutOwn((text + end).repeat(2000 / text.length))),
          );
      const next = tokenOf('count-ce1:9619', 120);
      (costs['the next one'] ??= []).push(
        await formsComparedBy(() => {
          rememberSecret(next, 'count-ce1:9619');
        }),
      );
    }
    // Sorted ones are found in steps, which grow by one where there are twice as many.
    for (const [text, [few = 0, more = 0, many = 0]] of Object.entries(costs)) {
      expect(more, text).to.be.below(2 * few + 10);
      expect(many, text).to.be.below(2.5 * few + 10);
    }
  });

  it('are hidden as one alone is, cut anywhere: by any piece, by the beginnings and ends of old ones, in lines', () => {
    const shows = (text: string, why: string) => {
      expect(withoutOwn(`got "${text}"`), `${why}: ${text}`).to.equal('got "(hidden)"');
    };
    for (const tokens of renewed('cut', 0, 12).slice(-3)) {
      for (const token of tokens.slice(-2))
        for (let at = 0; at + 16 <= token.length; at++) shows(token.slice(at, at + 16), 'any piece');
      for (const token of [...tokens.slice(0, 2), ...tokens.slice(-1)]) {
        for (let at = 16; at <= token.length; at++) {
          shows(token.slice(0, at), 'a beginning');
          shows(token.slice(-at), 'an end');
        }
        for (const end of ['\n', '\r\n', '<br>', '\\n'])
          for (let width = 48; width < token.length; width += 7)
            shows((token.match(new RegExp(`.{1,${width}}`, 'g')) ?? []).join(end), 'lines');
        const sent = Buffer.from(`Bearer ${token}`).toString('base64');
        expect(withoutOwn(sent)).to.match(/^QmVhcmVyIG?\(hidden\)$/);
      }
    }
  });

  it('are hidden with what is their own before a part that they share, in whatever signs', () => {
    const own = () => randomBytes(9).toString('base64').replaceAll('/', '&');
    const secrets = Array.from({ length: 40 }, () => `k=${own()}:=&;se=2027-01-01&sp=rwdl&sig=${own()}`);
    for (const secret of secrets) rememberSecret(secret);
    for (const secret of secrets)
      for (let at = 0; at + 16 <= secret.length; at++)
        for (let to = at + 16; to <= secret.length; to += 5) {
          const text = secret.slice(at, to);
          expect(withoutOwn(`got "${text}"`), text).to.equal('got "(hidden)"');
        }
  });

  it('are hidden in any piece, but a sign of who sends them back only with their beginning: their issuer may spell names in them', () => {
    const names = ['ANALY_SITE_XROOTD', 'CERN-PROD_UCORE_2', 'alice-job-0f3a9c27d1'];
    // A long secret is known by its parts at each 32nd character.
    const spelled = names.map((name) => name.padEnd(32, '-abcdefghijklmnopq')).join('');
    const tokens = Array.from({ length: 40 }, () => {
      const beginning = `${head}.${randomBytes(90).toString('base64url')}`.slice(0, 95);
      return `${beginning}.${spelled}${randomBytes(90).toString('base64url')}`;
    });
    const isSign = (text: string) => [withoutOwn(text) === text, holdsOwn(text)];
    for (const [index, token] of tokens.entries()) {
      rememberSecret(token, `hostile ${index}`);
      for (const name of names) expect(isSign(`${name} x`), name).to.deep.equal([false, false]);
      // Of the others so many that all their sorted ones are walked through.
      if (index % 13 !== 0) continue;
      for (const form of [token, ...[0, 1, 2].map((before) => inBytes(token, before))]) {
        for (let at = 16; at + 48 <= form.length; at += 5)
          expect(isSign(form.slice(at, at + 48)), form.slice(at)).to.deep.equal([false, false]);
        for (const length of [16, 40, form.length])
          expect(isSign(`QUEUE-${form.slice(0, length)}`), form).to.deep.equal([false, true]);
      }
    }
    const [first = ''] = tokens;
    for (const form of [first, ...[0, 1, 2].map((before) => inBytes(first, before))])
      for (const most of [form.slice(3), form.slice(40), form.slice(3, -3)])
        expect(isSign(`"${most}"`), most).to.deep.equal([false, true]);
    const password = 'Zq7Hunter-ANALY_SITE_XROOTD-9xKw2';
    rememberSecret(password);
    expect(isSign('x-ANALY_SITE_XROOTD-9xKw2')).to.deep.equal([false, true]);
  });
});

/** As base64 has it behind so many other bytes, as far as its characters are its own. */
function inBytes(secret: string, before: number): string {
  const all = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]).toString('base64url');
  return all.slice(Math.ceil((before * 8) / 6), Math.floor(((before + secret.length) * 8) / 6));
}

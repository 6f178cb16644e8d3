import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { inspectFile } from '../../../src/clients/credentials/credential-file.ts';
import { fromOutside } from '../../../src/util/own-secrets.ts';
import { makeJwt } from '../../support/credentials.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const opaque = () => randomBytes(24).toString('hex');

/** The forms in which nothing but its value tells what it is. */
const formsOf = (secret: string) => [
  secret.slice(secret.length / 2),
  Buffer.from(secret).toString('base64'),
  Buffer.from(`Bearer ${secret}`).toString('base64'),
  (secret.match(/.{1,40}/g) ?? []).join('\n'),
];

describe('hole 3: a credential file that was looked at', () => {
  let file: string;
  const put = async (text: string) => {
    writeFileSync(file, text, { mode: 0o600 });
    await inspectFile(file);
  };
  const expectHidden = (secret: string) => {
    for (const form of formsOf(secret))
      expect(fromOutside(`rejected: ${form}`)).to.match(/^rejected: (QmVhcmVyI\w)?\(hidden\)$/);
  };

  beforeEach(() => {
    file = join(temporaryDirectory(), 'credential');
  });

  it('has its token shown by nobody, also one without a form, and also after it was renewed', async () => {
    const [first, second] = [makeJwt({ sub: 'pilot', exp: 4e9 }), makeJwt({ sub: 'pilot', exp: 5e9 })];
    await put(`${first}\n`);
    await put(second);
    for (const token of [first, second]) expectHidden(token);
    const token = `gho_${opaque()}`;
    await put(`# of the site\n${token}\n`);
    expectHidden(token);
  });

  it('has all its tokens shown by nobody', async () => {
    const tokens = Array.from({ length: 5 }, (_, at) => makeJwt({ sub: `pilot${at}`, exp: 4e9 }));
    await put(`# tokens\n${tokens.join('\n\n')}\n`);
    for (const token of tokens) expectHidden(token);
  });

  it('has no line of its private key shown by anybody, and its certificate forgotten', async () => {
    const key = Array.from({ length: 24 }, () => randomBytes(48).toString('base64'));
    const pem = (what: string, lines: readonly string[]) =>
      `-----BEGIN ${what}-----\n${lines.join('\n')}\n-----END ${what}-----\n`;
    const certificate = [randomBytes(48).toString('base64')];
    await put(
      pem('CERTIFICATE', certificate) + pem('RSA PRIVATE KEY', key) + pem('CERTIFICATE', certificate),
    );
    for (const line of key) {
      expect(fromOutside(`bad line ${line}`)).to.equal('bad line (hidden)');
      expect(fromOutside(`bad ${Buffer.from(line).toString('base64')}`)).to.equal('bad (hidden)');
    }
    expect(fromOutside(`issuer ${certificate[0] ?? ''}`)).to.equal(`issuer ${certificate[0] ?? ''}`);
  });

  it('takes no word from messages where it is a list or a log by mistake', async () => {
    const words = ['condor_submit-failed-here', 'another-word-of-a-list', 'two words of a log that is long'];
    await put(words.join('\n'));
    for (const word of words) expect(fromOutside(word)).to.equal(word);
  });

  it('takes no word from messages that is an address, a host, a path or short', async () => {
    for (const text of [
      'central-manager.example.org',
      'condor@central-manager.example.org:9618',
      '192.168.100.200:9618',
      'https://issuer.example.org/Pilots',
      '/etc/condor/tokens.d/pool',
      'etc/condor/tokens.d/pool',
      'Short7Word8Of9Site',
    ]) {
      await put(`${text}\n`);
      expect(fromOutside(`asked ${text}`)).to.equal(`asked ${text}`);
    }
    const token = `/${randomBytes(24).toString('base64')}/Ab9`;
    await put(token);
    expectHidden(token);
  });

  it('has so many tokens remembered, and none that is too long: a log of them holds up nothing', async () => {
    const tokens = Array.from({ length: 3000 }, (_, at) => `eyJ${at}.${opaque()}${opaque()}`);
    await put([`eyJ${'x'.repeat(17_000)}${opaque()}`, ...tokens].join('\n'));
    const isHidden = (token = '') => fromOutside(Buffer.from(token).toString('base64')) === '(hidden)';
    expect(tokens.map(isHidden).indexOf(false)).to.equal(40);
    const long = Array.from({ length: 40 }, (_, at) => `eyJ${at}.${randomBytes(3500).toString('hex')}`);
    await put(long.join('\n'));
    const cut = long.map((token) => token.slice(10, 1000));
    expect(cut.map((one) => fromOutside(one) === '(hidden)').indexOf(false)).to.equal(9);
  });
});

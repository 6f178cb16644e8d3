import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { type Hearer, LastWordsReader } from '../../../src/sources/htcjob/last-words.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';

/** What the condition of a HTCJob shows, whose job wrote this and failed. */
async function shownOf(written: string): Promise<string> {
  const desk = {
    async logs(_: number, { stream, tail }: { readonly stream: string; readonly tail?: number | undefined }) {
      const lines = written.split('\n').slice(-(tail ?? Infinity) - 1);
      return (async function* () {
        if (stream === 'stderr') yield Buffer.from(lines.join('\n'));
      })();
    },
  };
  const reader = new LastWordsReader({ clock: new ManualClock(), log: recordingLog(), desk });
  const hearer: Hearer = { name: 'space/job', lastWords: undefined };
  const failed = { outcome: 'failed', facts: { workerId: 1, exitCode: 1 } };
  await reader.hear(hearer, { jobs: [failed] } as never, new AbortController().signal);
  return hearer.lastWords?.said?.text ?? '';
}

const pem = (modulusLength: number, type: 'pkcs1' | 'pkcs8') =>
  generateKeyPairSync('rsa', {
    modulusLength,
    privateKeyEncoding: { type, format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey.trimEnd();
const curve = generateKeyPairSync('ec', {
  namedCurve: 'secp521r1',
  privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey.trimEnd();
const digits = (count: number) =>
  Array.from({ length: count }, (_, at) => ((at * at * 7919) % 36).toString(36)).join('');

describe('the last words of a failed job', () => {
  it('are its last lines', async () => {
    const lines = Array.from({ length: 500 }, (_, at) => `line ${at}`);
    expect(await shownOf(`${lines.join('\n')}\n`)).to.equal(lines.slice(-10).join('\n'));
    expect(await shownOf('')).to.equal('');
    expect(await shownOf(`${'word '.repeat(1000)}end\n`)).to.match(/^\.\.\. (word )+end$/);
  });

  it('hole 3: show no part of a key or token, however long it is and wherever they are cut', async () => {
    const token = `eyJ${digits(60)}.${Buffer.from(JSON.stringify({ g: digits(2400) })).toString('base64url')}.${digits(340)}`;
    const keys = [pem(3072, 'pkcs1'), pem(4096, 'pkcs8'), curve];
    const secrets = [
      ...keys.flatMap((key) => [
        key,
        JSON.stringify({ key }),
        Buffer.from(key).toString('base64'),
        Buffer.from(key).toString('base64').replace(/.{76}/g, '$&\n'),
      ]),
      ...[token, `token is ${token}`, `PGPASSWORD=${digits(2200)}`, `password: "${digits(1500)}"`],
    ];
    for (const secret of secrets)
      for (const behind of [
        '',
        `\n${'done\n'.repeat(3)}`,
        `\n${'a word of it\n'.repeat(40)}`,
        `\n${'x y '.repeat(750)}`,
      ]) {
        const text = await shownOf(`+ cat secret\n${secret}${behind}`);
        const parts = secret.split(/\n|\\n/).flatMap((line) => line.match(/[A-Za-z\d+/]{16}/g) ?? []);
        expect(
          parts.filter((part) => text.includes(part)),
          secret.slice(0, 60) + behind.slice(0, 20),
        ).to.deep.equal([]);
      }
  });
});

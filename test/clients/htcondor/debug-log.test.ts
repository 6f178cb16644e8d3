import { expect } from 'chai';
import { debugLog } from '../../../src/clients/htcondor/debug-log.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';

describe('hole 3: what the commands of HTCondor say with --debug', () => {
  const logged = (said: string): string => {
    let text = '';
    debugLog({ info: (_, facts) => (text = String(facts.said)) })('condor_q', said);
    return text;
  };
  const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwaWxvdCJ9.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg';

  it('is logged without secrets, those of a form on each of its lines', () => {
    const lines = Array.from({ length: 100 }, (_, at) => `11/27/26 line ${at}`);
    const text = logged([...lines, `SECMAN: token ${token}`, 'condor_q: failed'].join('\n'));
    expect(text).to.not.include(token.slice(-20));
    expect([text.startsWith('11/27/26 line 0\n'), text.endsWith('\ncondor_q: failed')]).to.deep.equal([
      true,
      true,
    ]);
  });

  it('is logged without any line of a key', () => {
    const lines = Array.from(
      { length: 30 },
      (_, at) => `line${at}${'MIIEvQIBADANBgkqhkiG9w0BAQ'.slice(at % 9)}`,
    );
    const key = `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\nAB==\n-----END PRIVATE KEY-----`;
    expect(logged(`SSL: got\n${key}\nend`)).to.equal('SSL: got\n(hidden)\nend');
    expect(logged(`SSL: got\n${key.slice(40)}\nend`)).to.equal('(hidden)\nend');
  });

  it('is cut to its end, where a secret that was cut shows no rest', () => {
    rememberSecret('f00ba4-secret-of-the-schedd-with-a-long-tail');
    const rest = Array.from({ length: 160 }, () => 'x'.repeat(49)).join('\n');
    expect(logged(`f00ba4-secret-of-the-schedd-with-a-long-tail\n${rest}`)).to.equal(rest);
    expect(logged(`password: ${'y'.repeat(30)}\n${rest}`)).to.equal(rest);
  });
});

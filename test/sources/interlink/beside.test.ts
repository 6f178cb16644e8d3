import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ReportDoor } from '../../../src/sources/interlink/reports/report-door.ts';
import { readReportKey, reportToken } from '../../../src/sources/interlink/reports/report-key.ts';
import { isLoopback, requireConsent } from '../../../src/sources/interlink/server/listen.ts';
import { ThresherError } from '../../../src/worker/errors.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('the door for reports of interLink jobs', () => {
  const key = Buffer.from('k'.repeat(32));
  const uid = randomUUID();
  const report = {
    version: 1,
    containers: { main: { init: false, state: 'running', ready: true, restarts: 0 } },
  };

  function send(token: string, change: { path?: string; method?: string; body?: string } = {}) {
    const taken: string[] = [];
    const { path = `reports/${uid}`, method = 'POST', body = JSON.stringify(report) } = change;
    const headers = { authorization: `Bearer ${token}` };
    const answer = new ReportDoor(key).answer({ method, path, headers, body: Buffer.from(body) }, (of) => {
      taken.push(of);
      return true;
    });
    return { status: answer.status, taken };
  }

  const right = reportToken(key, uid);
  const rows = [
    ['takes the report of its own Pod', send(right), 200, 1],
    ['refuses a forged token', send(`${right.slice(0, -1)}~`), 401, 0],
    ['refuses the token of another Pod', send(reportToken(key, randomUUID())), 401, 0],
    ['refuses a body that is no report', send(right, { body: '{}' }), 400, 0],
    ['refuses other paths', send(right, { path: `reports/${uid}/x` }), 404, 0],
    ['refuses other methods', send(right, { method: 'GET' }), 405, 0],
  ] as const;
  for (const [title, { status, taken }, code, count] of rows)
    it(title, () => {
      expect(status).to.equal(code);
      expect(taken).to.have.length(count);
    });

  it('keeps its key for the next daemon, unreadable for others', () => {
    const file = join(temporaryDirectory(), 'a/report.key');
    const made = readReportKey(file, true);
    expect(readReportKey(file, true)).to.deep.equal(made);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const missing = join(temporaryDirectory(), 'none');
    expect(() => readReportKey(missing, false)).to.throw(ThresherError);
    expect(existsSync(missing)).to.equal(false);
  });
});

describe('where the sidecar for interLink listens', () => {
  for (const [address, own] of [
    ['127.0.0.1', true],
    ['127.8.0.9', true],
    ['::1', true],
    ['[::1]', true],
    ['::ffff:127.0.0.1', true],
    ['0.0.0.0', false],
    ['::', false],
    ['127.example.org', false],
    ['10.0.0.1', false],
  ] as const)
    it(`${address} is ${own ? '' : 'not '}this machine's alone`, () => {
      expect(isLoopback(address)).to.equal(own);
      const listen = () => {
        requireConsent({ host: address, othersMayReachIt: false });
      };
      if (own) expect(listen).not.to.throw();
      else expect(listen).to.throw(ThresherError, 'other machines may reach');
      requireConsent({ host: address, othersMayReachIt: true });
    });
});

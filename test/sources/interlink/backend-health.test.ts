import { expect } from 'chai';
import { BackendHealth } from '../../../src/sources/interlink/status/backend-health.ts';

const reason = (code: string) => [{ code, message: code }];

describe('A10: the backend for the ping of interLink', () => {
  it('is down once it has given no answer for a minute', () => {
    const health = new BackendHealth();
    expect(health.trouble([], 0)).to.equal(undefined);
    expect(health.trouble(reason('status-unknown'), 59_999)).to.equal(undefined);
    expect(health.trouble(reason('status-unknown'), 60_000)).to.equal('status-unknown');
    expect(health.trouble([], 61_000)).to.equal(undefined);
    expect(health.trouble(reason('plugin-timeout'), 90_000), 'a new absence').to.equal(undefined);
  });

  it('is down at once where it has never answered, but for the first listing of a daemon that starts', () => {
    expect(new BackendHealth().trouble(reason('status-unknown'), 5)).to.equal('status-unknown');
    const starting = new BackendHealth();
    expect(starting.trouble(reason('not-listed'), 5)).to.equal(undefined);
    expect(starting.trouble(reason('not-listed'), 60_005)).to.equal('not-listed');
  });

  for (const code of [
    'submission-backoff',
    'preflight',
    'queue-refused',
    'shutting-down',
    'credential-ending',
  ])
    it(`is not down by ${code}: its jobs run on`, () => {
      const health = new BackendHealth();
      for (const at of [0, 600_000]) expect(health.trouble(reason(code), at)).to.equal(undefined);
    });

  it('is down by the reason that says so, whichever stands first', () => {
    const reasons = [...reason('preflight'), ...reason('status-unknown')];
    expect(new BackendHealth().trouble(reasons, 0)).to.equal('status-unknown');
  });
});

import { expect } from 'chai';
import {
  absenceChange,
  findChange,
  observationChange,
  outcomeFromOutside,
  submitChange,
} from '../../../src/agents/ledger/outcomes.ts';
import { rememberSecret } from '../../../src/util/own-secrets.ts';
import { charactersLookedAt, maskedCharacters } from '../../support/masked-characters.ts';
import type { Observation } from '../../../src/worker/observation.ts';

const now = 1000;
const error = { code: 'no-free-slot', message: 'taken' };
const handle = { batchID: '17', pid: 17 };
const accepted = {
  workerId: 1,
  source: 'submitter',
  submitTime: now,
  handle: '{"batchID":"17","pid":17}',
  batchId: '17',
  error: null,
};

it('hole 8: of what a backend says at length, secrets are looked for in what is kept', async () => {
  const message = `exit 1: ${'secret=$('.repeat(10_000)}`;
  const seen: Observation = {
    workerId: 1,
    observedAt: now,
    status: 'failed',
    nativeStatus: 'F',
    error: { code: 'x', message },
  };
  const work = () => expect(observationChange(seen, false).error?.message).to.have.length(500);
  expect(await maskedCharacters(work)).to.be.within(1, 2500);
});

describe('hole 3: what a machine says that it is called', () => {
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwaWxvdCJ9.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg';
  const seen = (name: string) =>
    observationChange(
      {
        workerId: 1,
        observedAt: now,
        status: 'running',
        nativeStatus: name,
        node: name,
        computingElement: name,
      },
      false,
    );

  it('shows no secret by its form, and no text without end', () => {
    for (const [name, told] of [
      [`slot1@${jwt}`, 'slot1@(hidden)'],
      ['https://me:geheim-77@ce.site.org:8443', 'https://me:(hidden)@ce.site.org:8443'],
      ['https://ce.site.org/?access_token=geheim-77', 'https://ce.site.org/?access_token=(hidden)'],
    ] as const) {
      const { nativeStatus, node, computingElement } = seen(name);
      expect([nativeStatus, node, computingElement]).to.deep.equal([told, told, told]);
      const outcome = { kind: 'accepted', handle, computingElement: name } as const;
      expect(outcomeFromOutside(outcome)).to.include({ computingElement: told });
    }
    expect(seen('n'.repeat(5000)).node).to.have.length(300);
  });

  it('hole 8: is looked at as far as it is kept', async () => {
    rememberSecret('opaque-name-0123456789');
    expect(await charactersLookedAt(() => seen('words '.repeat(10_000)))).to.be.within(1, 10_000);
  });

  it('stays as it is where it is an ordinary name', () => {
    for (const name of [
      ...['slot1_2@host.site.org', 'slot1@token-host', 'slot1_1@key:9619', 'secret-host', 'host?x=1'],
      ...['auth.site.org:9619', 'credential-01.site.org:9619', 'my-token:9619', 'tokens:12345'],
      ...['arc.site.org:443/arc', 'ce.site.org:9619/ce.site.org-condor', 'passwd', 'Basic', 'SigKill'],
      'https://token.site.org:8443/arex?vo=atlas&queue=grid_long',
      'condor ce01.site.org ce01.site.org:9619',
      'slot1_1@glidein_1234_567890@wn-key-01.site.org',
      '<192.0.2.7:9618?addrs=192.0.2.7-9618&alias=wn.site.org&noUDP&sock=startd_1_2>',
      'ip-10-0-0-1.ec2.internal',
      'held (12)',
    ]) {
      const { nativeStatus, node, computingElement } = seen(name);
      expect([nativeStatus, node, computingElement]).to.deep.equal([name, name, name]);
    }
  });
});

describe('the outcome of a submission', () => {
  const submit = (
    attempt: number,
    outcome: Parameters<typeof submitChange>[2],
    status = 'pending' as const,
  ) => submitChange({ workerId: 1, attempt }, status, outcome, 3, now);

  it('accepted: submitted, with the handle, and an earlier error forgotten', () => {
    expect(submit(2, { kind: 'accepted', handle })).to.deep.equal({ ...accepted, to: 'submitted' });
  });

  it('accepted by a computing element: the change names it', () => {
    const outcome = { kind: 'accepted', handle, computingElement: 'ce.site.test:9619' } as const;
    const computingElement = 'ce.site.test:9619';
    expect(submit(2, outcome)).to.deep.equal({ ...accepted, to: 'submitted', computingElement });
  });

  for (const status of ['submitted', 'idle', 'ready', 'running'] as const) {
    it(`accepted, but the monitor was faster: it stays ${status} and gets the handle`, () => {
      const change = submitChange({ workerId: 1, attempt: 1 }, status, { kind: 'accepted', handle }, 3, now);
      expect(change).to.deep.equal({ ...accepted, to: status });
    });
  }

  for (const [attempt, permanent, to] of [
    [1, false, 'pending'],
    [2, false, 'pending'],
    [3, false, 'missed'],
    [4, false, 'missed'],
    [1, true, 'missed'],
  ] as const) {
    it(`rejected in attempt ${attempt} of 3${permanent ? ' for good' : ''}: ${to}`, () => {
      expect(submit(attempt, { kind: 'rejected', error, permanent })).to.deep.equal({
        workerId: 1,
        to,
        source: 'submitter',
        error,
        ...(to === 'missed' && { endTime: now }),
      });
    });
  }

  it('unknown: nothing is concluded, the error is kept', () => {
    expect(submit(3, { kind: 'unknown', error })).to.deep.equal({
      workerId: 1,
      to: 'pending',
      source: 'submitter',
      error,
    });
  });
});

describe('the search for an intent', () => {
  const find = (
    outcome: Parameters<typeof findChange>[2],
    { attempt = 1, allowed = true, lastError = undefined as typeof error | undefined } = {},
  ) =>
    findChange(
      { workerId: 1, attempt },
      'pending',
      outcome,
      { allowed, spent: attempt, maxAttempts: 3, lastError },
      now,
    );

  it('found at a computing element: the change names it', () => {
    const computingElement = 'ce.site.test:9619';
    const change = find({ kind: 'found', handle, computingElement });
    expect(change).to.deep.equal({ ...accepted, to: 'submitted', computingElement });
  });

  it('found: as if it had been accepted', () => {
    expect(find({ kind: 'found', handle })).to.deep.equal({ ...accepted, to: 'submitted' });
  });

  it('unknown: nothing is concluded, however often', () => {
    expect(find({ kind: 'unknown', error }, { attempt: 9 })).to.deep.equal({
      workerId: 1,
      to: 'pending',
      source: 'submitter',
      error,
    });
  });

  it('absent with attempts left: it is tried again', () => {
    expect(find({ kind: 'absent' }, { attempt: 2 })).to.equal(undefined);
  });

  it('absent after the last attempt: missed with the error of that attempt', () => {
    expect(find({ kind: 'absent' }, { attempt: 3, lastError: error })).to.deep.equal({
      workerId: 1,
      to: 'missed',
      source: 'submitter',
      error,
      endTime: now,
    });
  });

  it('absent where nothing may be submitted any more: missed, and it says that it never started', () => {
    expect(find({ kind: 'absent' }, { allowed: false })?.error).to.deep.equal({
      code: 'never-started',
      message: 'not on the backend after attempt 1; nothing of it can start any more',
    });
  });
});

describe('the change that an observation makes', () => {
  const seen = (changes: Partial<Observation> = {}): Observation => ({
    workerId: 1,
    status: 'running',
    nativeStatus: 'R',
    observedAt: now,
    ...changes,
  });

  it('is no more than it says', () => {
    expect(observationChange(seen(), false)).to.deep.equal({
      workerId: 1,
      to: 'running',
      source: 'monitor',
      nativeStatus: 'R',
    });
  });

  it('is all that it says, also an exit code of 0', () => {
    const facts = { exitCode: 0, node: 'n1', computingElement: 'ce:1', startTime: 1, endTime: 2 };
    const change = observationChange(seen({ status: 'finished', ...facts, error, detail: { a: 1 } }), false);
    expect(change).to.deep.equal({
      workerId: 1,
      to: 'finished',
      source: 'monitor',
      nativeStatus: 'R',
      ...facts,
      error,
      detail: '{"a":1}',
    });
  });

  for (const [status, to] of [
    ['failed', 'cancelled'],
    ['finished', 'finished'],
    ['missed', 'missed'],
    ['running', 'running'],
  ] as const) {
    it(`is ${to} for a worker whose end was asked for and that is ${status}`, () => {
      expect(observationChange(seen({ status }), true).to).to.equal(to);
    });
  }

  it('is failed for a worker whose end no operator asked for', () => {
    expect(observationChange(seen({ status: 'failed' }), false).to).to.equal('failed');
  });

  it('keeps a sentence as long as PanDA takes it', () => {
    const long = { code: 'exit-status', message: 'x'.repeat(2000) };
    expect(observationChange(seen({ error: long }), false).error?.message).to.have.length(500);
  });

  it('drops a detail that is too long rather than cut JSON in two', () => {
    expect(observationChange(seen({ detail: { text: 'x'.repeat(30_000) } }), false)).not.to.have.property(
      'detail',
    );
  });
});

describe('a worker that the backend does not know any more', () => {
  it('is missed, and lost', () => {
    expect(absenceChange(1, false, true, now)).to.deep.equal({
      workerId: 1,
      to: 'missed',
      source: 'monitor',
      endTime: now,
      error: { code: 'lost', message: 'the backend does not know the worker any more' },
    });
  });

  it('is missed, and its end unseen, where this daemon never saw it', () => {
    expect(absenceChange(1, false, false, now)).to.deep.include({ to: 'missed', endTime: now });
    expect(absenceChange(1, false, false, now).error).to.have.property('code', 'ended-unseen');
  });

  it('is cancelled where its end was asked for', () => {
    expect(absenceChange(1, true, false, now)).to.deep.equal({
      workerId: 1,
      to: 'cancelled',
      source: 'monitor',
      endTime: now,
      error: { code: 'killed', message: 'ended on request' },
    });
  });
});

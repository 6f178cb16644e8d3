import { expect } from 'chai';
import fc from 'fast-check';
import { applyEvent } from '../../../../src/plugins/htcondor/state/events.ts';
import { stateOf, type StateOptions } from '../../../../src/plugins/htcondor/state/job-state.ts';
import type { JobAd, JobEvent } from '../../../../src/plugins/htcondor/state/types.ts';

const options: StateOptions = { heldTimeout: 3600 };
const now = 2_000_000_000;
const s = now / 1000;

/** "status native [code]" of an ad. */
function seen(ad: JobAd, changes: Partial<StateOptions> = {}): string | undefined {
  const state = stateOf(1, ad, now, { ...options, ...changes });
  if (state === undefined) return undefined;
  const { status, nativeStatus, error } = state.observation;
  return [status, nativeStatus, ...(error === undefined ? [] : [error.code])].join(' ');
}

describe('what a job of HTCondor means', () => {
  for (const [what, ad, expected] of [
    ['waits', { JobStatus: 1 }, 'submitted idle'],
    ['waits for another start', { JobStatus: 1, JobStartDate: s - 9 }, 'idle idle'],
    ['was evicted, by its count of starts', { JobStatus: 1, NumJobStarts: 1 }, 'idle idle'],
    ['runs', { JobStatus: 2, JobStartDate: s - 9 }, 'running running'],
    ['sends its output', { JobStatus: 6, JobStartDate: s - 9 }, 'running transferring_output'],
    ['is suspended', { JobStatus: 7, JobStartDate: s - 9 }, 'idle suspended'],
    ['is held', { JobStatus: 5, EnteredCurrentStatus: s - 9 }, 'submitted held'],
    ['was removed', { JobStatus: 3, RemoveReason: 'via condor_rm' }, 'cancelled removed htcondor-removed'],
    [
      'was removed after exit status 0 was noted',
      { JobStatus: 3, ExitCode: 0 },
      'cancelled removed htcondor-removed',
    ],
    ['ended with 0', { JobStatus: 4, ExitCode: 0, ExitBySignal: false }, 'finished completed'],
    ['ended with 3', { JobStatus: 4, ExitCode: 3, ExitBySignal: false }, 'failed completed exit-status'],
    [
      'ended by a signal',
      { JobStatus: 4, ExitBySignal: true, ExitSignal: 9 },
      'failed completed exit-status',
    ],
    [
      'ended by a signal, with a 0 beside it',
      { JobStatus: 4, ExitBySignal: true, ExitCode: 0 },
      'failed completed exit-status',
    ],
    [
      'ended with 0 in its second run, and still has the signal of its first',
      { JobStatus: 4, ExitBySignal: false, ExitSignal: 15, ExitCode: 0, NumJobStarts: 2 },
      'finished completed',
    ],
    ['ended by a signal, by that alone', { JobStatus: 4, ExitSignal: 9 }, 'failed completed exit-status'],
    ['ended without an exit status', { JobStatus: 4 }, 'failed completed exit-status-lost'],
    [
      'was completed, and shown once more as running',
      { JobStatus: 2, LastJobStatus: 4, CompletionDate: s, ExitBySignal: false, ExitCode: 0 },
      'finished completed',
    ],
    [
      'was completed, then taken out of the queue',
      { JobStatus: 3, LastJobStatus: 4, CompletionDate: s, ExitBySignal: false, ExitCode: 0 },
      'finished completed',
    ],
    [
      'was removed, and shown once more as running',
      { JobStatus: 2, LastJobStatus: 3 },
      'cancelled removed htcondor-removed',
    ],
    ['has a status that nobody knows', { JobStatus: 12 }, undefined],
    ['has no status', { ExitCode: 0 }, undefined],
  ] as const satisfies readonly (readonly [string, JobAd, string | undefined])[]) {
    it(`that ${what} is ${expected ?? 'nothing'}`, () => {
      expect(seen(ad)).to.equal(expected);
    });
  }

  it('never is a success after a removal or a signal', () => {
    const number = fc.option(fc.integer({ min: 0, max: 8 }), { nil: undefined });
    const flag = fc.option(fc.boolean(), { nil: undefined });
    const ads = fc.record({
      ...{
        JobStatus: number,
        LastJobStatus: number,
        ExitCode: number,
        ExitSignal: number,
        CompletionDate: number,
      },
      ExitBySignal: flag,
    });
    fc.assert(
      fc.property(ads, (ad) => {
        const found = stateOf(1, ad as JobAd, now, options);
        if (found?.observation.status !== 'finished') return true;
        return (
          ad.ExitCode === 0 &&
          ad.ExitBySignal !== true &&
          (ad.ExitBySignal === false || !ad.ExitSignal) &&
          (ad.JobStatus === 4 || ad.LastJobStatus === 4)
        );
      }),
    );
  });

  it('has the exit status of a shell, the node and the times of HTCondor', () => {
    const ad: JobAd = {
      ...{ JobStatus: 4, ExitBySignal: true, ExitSignal: 9, LastRemoteHost: 'slot1_2@node7' },
      ...{ JobStartDate: s - 100, CompletionDate: s - 50, EnteredCurrentStatus: s - 40 },
    };
    const { observation } = stateOf(1, ad, now, options) ?? {};
    expect(observation).to.include({
      exitCode: 137,
      node: 'node7',
      startTime: now - 100_000,
      endTime: now - 50_000,
    });
    expect(observation?.error?.message).to.equal('ended by signal 9 (SIGKILL)');
  });

  it('puts exit statuses into words where the queue names the payload', () => {
    const ad = { JobStatus: 4, ExitCode: 80, ExitBySignal: false };
    const found = stateOf(1, ad, now, { ...options, payloadType: 'atlas_pilot_wrapper' });
    expect(found?.observation.error?.message).to.equal(
      'ended with exit status 80: pilot proxy invalid or with insufficient timeleft',
    );
    expect(
      stateOf(1, ad, now, { ...options, payloadType: 'constructor' })?.observation.error?.message,
    ).to.equal('ended with exit status 80');
  });

  for (const [what, ad, expected] of [
    ['for less than heldTimeout', { EnteredCurrentStatus: s - 3599 }, undefined],
    ['for heldTimeout', { EnteredCurrentStatus: s - 3600 }, 'cancelled htcondor-held'],
    ['since nobody knows when', {}, undefined],
    ['while its input is spooled', { EnteredCurrentStatus: s - 99_999, HoldReasonCode: 16 }, undefined],
    [
      'because the CE lost it',
      { EnteredCurrentStatus: s, HoldReason: 'Job not found' },
      'cancelled htcondor-ce',
    ],
    ['for its wall time', { EnteredCurrentStatus: s, HoldReasonCode: 47 }, 'failed walltime'],
    [
      'for its memory',
      { EnteredCurrentStatus: s, HoldReasonCode: 34, HoldReasonSubCode: 102 },
      'failed htcondor-memory',
    ],
    [
      'for its disk',
      { EnteredCurrentStatus: s, HoldReasonCode: 34, HoldReasonSubCode: 104 },
      'failed htcondor-disk',
    ],
    ["by a machine's policy", { EnteredCurrentStatus: s - 9, HoldReasonCode: 21 }, undefined],
    ['for a missing file, at first', { EnteredCurrentStatus: s - 9, HoldReasonCode: 13 }, undefined],
    [
      'for a missing file',
      { EnteredCurrentStatus: s - 3600, HoldReasonCode: 13 },
      'cancelled htcondor-input',
    ],
    [
      'for its proxy',
      { EnteredCurrentStatus: s - 3600, HoldReason: 'Proxy expired' },
      'cancelled htcondor-credential',
    ],
  ] as const satisfies readonly (readonly [string, JobAd, string | undefined])[]) {
    it(`held ${what} is ${expected === undefined ? 'kept' : `given up as ${expected}`}`, () => {
      const state = stateOf(1, { JobStatus: 5, ...ad }, now, options);
      expect(state?.observation.status).to.equal('submitted');
      const { verdict } = state ?? {};
      expect(verdict && `${verdict.status} ${verdict.error?.code ?? ''}`).to.equal(expected);
    });
  }

  it('says when to look again at a held job', () => {
    expect(stateOf(1, { JobStatus: 5, EnteredCurrentStatus: s - 600 }, now, options)?.lookAgainAt).to.equal(
      now + 3_000_000,
    );
  });
});

describe('events of a job log', () => {
  const after = (...events: (Partial<JobEvent> & { EventTypeNumber: number })[]): JobAd =>
    events.reduce<JobAd>((ad, event, index) => applyEvent(ad, { at: s - 100 + index, ...event }), {});

  for (const [what, events, expected] of [
    ['submitted', [0], 'submitted idle'],
    ['started', [0, 1], 'running running'],
    ['evicted', [0, 1, 4], 'idle idle'],
    ['evicted and started again', [0, 1, 4, 1], 'running running'],
    ['suspended', [0, 1, 10], 'idle suspended'],
    ['continued', [0, 1, 10, 11], 'running running'],
    ['held', [0, 12], 'submitted held'],
    ['released', [0, 12, 13], 'submitted idle'],
    ['held while running', [0, 1, 12], 'idle held'],
    ['aborted', [0, 9], 'cancelled removed htcondor-removed'],
    ['lost with its machine', [0, 1, 22, 24], 'idle idle'],
    ['read from the middle', [1], 'running running'],
    ['of a kind that nobody knows', [0, 1, 999], 'running running'],
  ] as const) {
    it(`${what}: ${expected}`, () => {
      expect(seen(after(...events.map((EventTypeNumber) => ({ EventTypeNumber }))))).to.equal(expected);
    });
  }

  it('end a job once, whatever comes after', () => {
    const ended = after(
      { EventTypeNumber: 1 },
      { EventTypeNumber: 5, TerminatedNormally: true, ReturnValue: 0 },
    );
    expect(seen(ended)).to.equal('finished completed');
    expect(applyEvent(ended, { EventTypeNumber: 1, at: s })).to.equal(ended);
    expect(applyEvent(ended, { EventTypeNumber: 9, at: s })).to.equal(ended);
  });

  it('tell a signal from an exit status', () => {
    const killed = after(
      { EventTypeNumber: 1 },
      { EventTypeNumber: 5, TerminatedNormally: false, TerminatedBySignal: 11 },
    );
    expect(stateOf(1, killed, now, options)?.observation).to.include({ status: 'failed', exitCode: 139 });
  });

  it('keep the reason for a hold when the job is removed', () => {
    const ad = after(
      { EventTypeNumber: 12, HoldReason: 'no file' },
      { EventTypeNumber: 9, Reason: 'via condor_rm' },
    );
    expect(stateOf(1, ad, now, options)?.observation.error?.message).to.equal(
      'removed: via condor_rm; it was held before: no file',
    );
  });
});

import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { applyEvent, isBehindEnd } from '../../../../src/plugins/htcondor/state/events.ts';
import {
  endedReason,
  givenUpBecause,
  givenUpReason,
  stateOf,
  type StateOptions,
} from '../../../../src/plugins/htcondor/state/job-state.ts';
import { holdRules } from '../../../../src/plugins/htcondor/state/hold-rules.ts';
import { observationChange } from '../../../../src/agents/ledger/outcomes.ts';
import { isoSeconds } from '../../../../src/util/clock.ts';
import { jobOf } from '../../../../src/plugins/htcondor/marks.ts';
import type { JobEvent } from '../../../../src/clients/htcondor/event-types.ts';
import { isFinal } from '../../../../src/worker/status.ts';
import { rememberSecret } from '../../../../src/util/own-secrets.ts';
import type { JobAd } from '../../../../src/plugins/htcondor/state/types.ts';

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
  it('names the CE that it was sent to, if any', () => {
    const of = (changes: Partial<StateOptions>) =>
      stateOf(1, { JobStatus: 1 }, now, { ...options, ...changes });
    expect(of({ computingElement: 'ce:1' })?.observation.computingElement).to.equal('ce:1');
    expect(of({})?.observation).not.to.have.property('computingElement');
  });

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

  it('hole 5: is final for no job in the queue, but for one that is completed, whatever it was before', () => {
    const statuses = [undefined, ...Array.from({ length: 9 }, (_, at) => at)];
    const kinds: readonly JobAd[] = [
      {},
      { JobStartDate: s - 9, NumJobStarts: 1 },
      { CompletionDate: s - 5, ExitBySignal: false, ExitCode: 0 },
      { HoldReason: 'Failed to start GAHP', HoldReasonCode: 0, EnteredCurrentStatus: 1000 },
      {
        HoldReasonCode: 46,
        HoldReason: 'too long',
        RemoveReason: 'via condor_rm',
        EnteredCurrentStatus: 1000,
      },
      { RemoveReason: `${givenUpReason} (by user pilot)`, LastHoldReasonCode: 46, LastHoldReason: 'x' },
    ];
    let seenOf = 0;
    for (const JobStatus of statuses)
      for (const LastJobStatus of statuses)
        for (const kind of kinds) {
          const ad = {
            ...kind,
            ...(JobStatus !== undefined && { JobStatus }),
            ...(LastJobStatus !== undefined && { LastJobStatus }),
          };
          const state = stateOf(1, ad, now, { ...options, queued: true });
          const what = JSON.stringify(ad);
          const isCompleted =
            JobStatus === 4 || (JobStatus === 3 && LastJobStatus === 4 && 'CompletionDate' in ad);
          if (state === undefined) continue;
          seenOf++;
          expect(isFinal(state.observation.status), what).to.equal(isCompleted);
          // Given up is only who was not removed before.
          if (LastJobStatus === 3) expect(state.verdict, what).to.equal(undefined);
          if (state.verdict !== undefined) expect(JobStatus, what).to.equal(5);
        }
    expect(seenOf).to.be.greaterThan(300);
  });

  const field = JSON.parse(readFileSync('test/fixtures/htcondor/field-ads.json', 'utf8')) as readonly {
    readonly what: string;
    readonly ad: JobAd;
  }[];
  for (const { what, ad } of field)
    it(`hole 5: has not ended where ${what}`, () => {
      const state = stateOf(1, ad, now, { ...options, queued: true });
      expect(state?.verdict).to.equal(undefined);
      expect(state?.observation.nativeStatus).to.equal('removing');
      expect(isFinal(state?.observation.status ?? 'cancelled')).to.equal(false);
      expect(state?.observation.detail?.['Removing']).to.match(
        /removed, then held since 1970.* may run; condor_release/,
      );
    });

  // A thresher of before removed all of them as held for too long.
  for (const because of [givenUpReason, endedReason])
    it(`hole 5: is given up with the reason of its hold once its removed job has left the queue (${because})`, () => {
      const ad: JobAd = {
        JobStatus: 3,
        LastJobStatus: 5,
        RemoveReason: `${because} (by user pilot)`,
        LastHoldReason: 'The job exceeded allowed job duration of 1:00',
        LastHoldReasonCode: 46,
      };
      expect(givenUpBecause(ad)).to.equal(because);
      expect(seen(ad, { queued: true })).to.equal('submitted removing');
      expect(seen(ad)).to.equal('failed removed walltime');
      expect(stateOf(1, ad, now, options)?.observation.error?.message).to.include('allowed job duration');
    });

  it('never is a success after a removal or a signal', () => {
    const number = fc.option(fc.integer({ min: 0, max: 8 }), { nil: undefined });
    const flag = fc.option(fc.boolean(), { nil: undefined });
    const ads = fc.record({
      JobStatus: number,
      LastJobStatus: number,
      ExitCode: number,
      ExitSignal: number,
      CompletionDate: number,
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
      JobStatus: 4,
      ExitBySignal: true,
      ExitSignal: 9,
      LastRemoteHost: 'slot1_2@node7',
      JobStartDate: s - 100,
      CompletionDate: s - 50,
      EnteredCurrentStatus: s - 40,
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

  for (const [what, ad, queuedAt, expected] of [
    ['long before its start', { JobStartDate: s - 100, CompletionDate: 5 }, undefined, [-100, -100]],
    ['before its submission, without a start', { CompletionDate: 5 }, s - 70, [undefined, -70]],
    ['before its submission, which is ahead', { CompletionDate: 5 }, s + 70, [undefined, 0]],
    [
      'in the future, by a clock that is ahead',
      { JobStartDate: s + 900, CompletionDate: s + 1000 },
      s + 800,
      [-100, 0],
    ],
    [
      'in the future, after a start that is past',
      { JobStartDate: s - 9, CompletionDate: s + 1 },
      s - 9,
      [-10, 0],
    ],
  ] as const satisfies readonly (readonly [string, JobAd, number | undefined, readonly unknown[]])[])
    it(`has an end between its submission, its start and now where HTCondor tells one ${what}`, () => {
      const ended = { JobStatus: 4, ExitBySignal: false, ExitCode: 0, ...ad };
      const found = stateOf(1, ended, now, { ...options, ...(queuedAt !== undefined && { queuedAt }) });
      const { startTime, endTime } = found?.observation ?? {};
      const seconds = (ms: number | undefined) => (ms === undefined ? undefined : (ms - now) / 1000);
      expect([seconds(startTime), seconds(endTime)]).to.deep.equal(expected);
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
      'because the CE lost it, at first',
      { EnteredCurrentStatus: s - 9, HoldReason: 'Job not found' },
      undefined,
    ],
    [
      'because the CE lost it',
      { EnteredCurrentStatus: s - 3600, HoldReason: 'Job not found' },
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
      const waits = 'EnteredCurrentStatus' in ad && ad.EnteredCurrentStatus === s - 3600;
      expect(state?.heldFor).to.equal(verdict && (waits ? 3600 : undefined));
    });
  }

  // Words of HTCondor's grid manager, with code 0, or those that a CE passes on.
  for (const [reason, expected, heldTimeout = 0] of [
    ['Job not found', 'cancelled htcondor-ce', 3600],
    ['Job disappeared from remote schedd', 'cancelled htcondor-ce', 3600],
    ['Job removed from batch queue manually', 'cancelled htcondor-ce', 3600],
    ['Failed to start GAHP', 'cancelled htcondor-ce', 3600],
    [
      'Failed to start GAHP: Agent pid 4711\\nHost key verification failed.',
      ...(['cancelled htcondor-ce', 3600] as const),
    ],
    ['ARC job failed: LRMS error: (271) job killed: vmem', 'failed htcondor-memory'],
    ['ARC job failed: LRMS error: (-1) Job probably exceeded memory limit', 'failed htcondor-memory'],
    ['ARC job failed: LRMS error: (271) job killed: wall', 'failed walltime'],
    ['ARC job failed: LRMS error: (271) Job timeout', 'failed walltime'],
    ['ARC job failed: LRMS error: (15) Node fail', 'failed htcondor-ce'],
    ['ARC job failed for unknown reason', 'failed htcondor-ce'],
    ['Job exit information is missing State element', 'failed htcondor-ce'],
    ['ARC job failed: Job submission to LRMS failed', 'cancelled htcondor-ce', 3600],
    ['ARC job failed: Job submission to LRMS failed: no such memory', 'cancelled htcondor-ce', 3600],
    ['ARC job failed: LRMS error: (-1) Job missing from SLURM', 'failed htcondor-ce', 3600],
    ['ARC job failed: LRMS error: (-1) Job was lost with unknown exit code', 'failed htcondor-ce', 3600],
    ['Failed to provide GAHP with token', 'cancelled htcondor-credential', 3600],
    ['Failed to initialize GAHP', 'cancelled htcondor-credential', 3600],
    [
      'Error connecting to schedd ce01.example.edu: SECMAN:2010:Received "DENIED" from server for user pilot@daemon.example.org using method GSI.|AUTHENTICATE:1004:Failed to authenticate using FS',
      ...(['cancelled htcondor-credential', 3600] as const),
    ],
    [
      'Error connecting to schedd ce01.example.edu: CEDAR:6001:Failed to connect to <192.0.2.1:9619>',
      ...(['cancelled htcondor-ce', 3600] as const),
    ],
    ['Attempts to submit failed: sbatch: error: invalid account', 'cancelled htcondor-ce', 3600],
    ['Unspecified gridmanager error', 'cancelled htcondor-ce', 3600],
    [
      'File stage-in failed: Transfer of /x/wrapper.sh failed: Forbidden',
      ...(['cancelled htcondor-input', 3600] as const),
    ],
    ["Schedd ce01.example.edu didn't send expected files", 'cancelled htcondor-output', 3600],
    // They say something else.
    ['The job attribute PeriodicHold expression evaluated to TRUE', 'cancelled htcondor-held', 3600],
    ['unexpected token in the expression of the site', 'cancelled htcondor-held', 3600],
  ] as const satisfies readonly (readonly [string, string, number?])[]) {
    it(`held at a CE by "${reason.slice(0, 60)}" is given up as ${expected} after ${heldTimeout} s`, () => {
      const verdictAt = (age: number) => {
        const ad = { JobStatus: 5, HoldReason: reason, HoldReasonCode: 0, EnteredCurrentStatus: s - age };
        return stateOf(1, ad, now, options)?.verdict;
      };
      const { status, error } = verdictAt(heldTimeout) ?? {};
      expect([status, error?.code].join(' ')).to.equal(expected);
      expect(verdictAt(3599) === undefined).to.equal(heldTimeout > 0);
    });
  }

  /** What says that a job has ended by itself, and not that HTCondor or a CE no longer knows of it. */
  const saysEnd = ({ HoldReason = '', HoldReasonCode = 0, HoldReasonSubCode = 0 }: JobAd) =>
    /^ARC job failed\b(?!.*(submission to|LRMS ID|missing from|was lost))|^Job exit information /.test(
      HoldReason,
    ) ||
    [33, 34, 46, 47].includes(HoldReasonCode) ||
    (HoldReasonCode === 21 && [102, 104].includes(HoldReasonSubCode));

  it('held is never given up before heldTimeout where nothing says that it has ended by itself', () => {
    const words = [
      ...['', 'Failed to start GAHP', 'Failed to start GAHP: Agent pid 4711', 'Failed to initialize GAHP'],
      ...[
        'Failed to start gridmanager',
        'Failed to provide GAHP with token',
        'Unspecified gridmanager error',
      ],
      ...['Job not found', 'Job disappeared from remote schedd', 'Job removed from batch queue manually'],
      ...['Error connecting to schedd ce', 'Error locating schedd ce', 'Remote schedd returned', 'Forbidden'],
      ...['held remotely with no hold reason', 'Attempts to submit failed', 'submission command failed'],
      ...['ARC_JOB_NEW timed out', 'ARC_JOB_KILL timed out', 'Job could not be cleaned'],
      ...['Proxy expired', 'ARC job has no credentials', 'Failed to find valid session directory'],
      ...[
        'ARC job failed: Job submission to PBS failed: wall time',
        'ARC job failed: Failed extracting LRMS ID',
      ],
      ...[
        'ARC job failed: LRMS error: (-1) Job missing from PBS: memory',
        'ARC job failed for unknown reason',
      ],
      ...[
        'ARC job failed: LRMS error: (-1) Job was lost',
        'ARC job failed: LRMS error: (271) job killed: wall',
      ],
      ...['Job exit information is missing State element', 'Job exit information invalid', 'via condor_hold'],
    ];
    const number = (max: number) => fc.option(fc.integer({ min: 0, max }), { nil: undefined });
    const holds = fc.record({
      HoldReason: fc.oneof(fc.constantFrom(...words), fc.string()),
      HoldReasonCode: fc.oneof(fc.constant(0), number(60)),
      HoldReasonSubCode: fc.oneof(fc.constantFrom(0, 102, 104), number(300)),
    });
    const verdictAt = (hold: object, age: number) =>
      stateOf(1, { JobStatus: 5, EnteredCurrentStatus: s - age, ...hold }, now, options)?.verdict;
    fc.assert(
      fc.property(holds, fc.integer({ min: 0, max: 3599 }), (hold, age) => {
        const ad = hold as JobAd;
        return saysEnd(ad) || verdictAt(ad, age) === undefined;
      }),
      { numRuns: 2000 },
    );
    const open = words.filter((HoldReason) => !saysEnd({ HoldReason }));
    expect(open.filter((HoldReason) => verdictAt({ HoldReason, HoldReasonCode: 0 }, 0))).to.deep.equal([]);
    expect(open.filter((HoldReason) => !verdictAt({ HoldReason, HoldReasonCode: 0 }, 3600))).to.deep.equal(
      [],
    );
  });

  it('held is given up at once by rows alone that say that it has ended', () => {
    for (const { after, codes, subCodes, reason, seen: what } of holdRules) {
      if (after !== 0) continue;
      if (codes === undefined)
        expect(reason?.source, what).to.match(/^\^\(?(ARC job failed|Job exit information)/);
      for (const HoldReasonCode of codes ?? [])
        for (const HoldReasonSubCode of subCodes ?? [0])
          if (HoldReasonCode !== 21 || HoldReasonSubCode !== 0)
            expect(saysEnd({ HoldReasonCode, HoldReasonSubCode }), what).to.equal(true);
    }
  });

  it('held by the rule of a CE that refuses it is given up as refused by the CE', () => {
    const HoldReason =
      'CE job in status 1 put on hold by SYSTEM_PERIODIC_HOLD due to non-existent route in JOB_ROUTER_ENTRIES or route job limit.';
    const ad = { JobStatus: 5, HoldReason, HoldReasonCode: 26, EnteredCurrentStatus: s - 3600 };
    expect(stateOf(1, ad, now, options)?.verdict?.error?.code).to.equal('htcondor-ce');
  });
});

describe('a job that waits in the queue', () => {
  const limited: StateOptions = { ...options, queued: true, queueTimeLimit: 600 };
  const look = (ad: JobAd, changes: Partial<StateOptions> = {}) =>
    stateOf(1, { JobStatus: 1, EnteredCurrentStatus: s - 600, ...ad }, now, { ...limited, ...changes });

  it('is given up after its limit with a sentence that has its age, and the word of its CE', () => {
    const { observation, verdict, waitedFor, heldFor } = look({ GridJobStatus: 'PENDING' }) ?? {};
    expect([observation?.status, verdict?.status, waitedFor, heldFor]).to.deep.equal([
      ...['submitted', 'failed', 600],
      undefined,
    ]);
    expect(verdict?.error).to.deep.equal({
      code: 'htcondor-queue-time',
      message: 'queueTimeLimit of 600 s is over: idle for 600 s; GridJobStatus is PENDING',
    });
    expect(verdict?.endTime).to.equal(now);
  });

  for (const [what, ad, changes] of [
    ['before its limit', { EnteredCurrentStatus: s - 599 }, {}],
    ['without a limit', {}, { queueTimeLimit: 0 }],
    ['where no limit is said', {}, { queueTimeLimit: undefined }],
    ['outside the queue', {}, { queued: false }],
    ['while it runs', { JobStatus: 2 }, {}],
    ['while it is suspended', { JobStatus: 7 }, {}],
    ['where its ad does not say since when', { EnteredCurrentStatus: 0 }, {}],
  ] as const)
    it(`is not given up ${what}`, () => {
      const state = look(ad, changes as Partial<StateOptions>);
      expect(state?.observation.status).to.be.a('string');
      expect(state).not.to.have.property('verdict');
    });

  it('shows since when it waits once that is an hour, and until then nothing that would change its worker', () => {
    const since = (seconds: number, more: JobAd = {}) =>
      look({ EnteredCurrentStatus: s - seconds, ...more })?.observation.detail?.Waiting;
    expect(since(3599)).to.equal(undefined);
    expect(since(3600)).to.equal(`idle since ${isoSeconds(now - 3_600_000)}`);
    expect(since(3600, { JobStatus: 2 })).to.equal(undefined);
  });

  it('failed where it was removed for that, by the reason that its ad has', () => {
    const RemoveReason =
      'via condor_rm (by user pilot) queueTimeLimit of 600 s is over: given up by thresher';
    const state = stateOf(1, { JobStatus: 3, RemoveReason, LastHoldReasonCode: 13 }, now, options);
    expect(state?.observation).to.deep.include({
      status: 'failed',
      nativeStatus: 'removed',
      error: { code: 'htcondor-queue-time', message: 'queueTimeLimit of 600 s is over' },
    });
    expect(seen({ JobStatus: 3, RemoveReason: 'queueTimeLimit of 600 s is over' })).to.equal(
      'cancelled removed htcondor-removed',
    );
  });
});

describe('events of a job log', () => {
  const head = { cluster: 12, proc: 3 };
  const event = (kind: JobEvent['kind'], more: object = {}, time = now) =>
    ({ ...head, kind, time, ...more }) as JobEvent;
  const after = (...events: (readonly [JobEvent['kind'], object?])[]): JobAd =>
    events.reduce<JobAd>(
      (ad, [kind, more], index) => applyEvent(ad, event(kind, more, now - 100_000 + 1000 * index)),
      {},
    );

  for (const [what, kinds, expected] of [
    ['submitted', ['submit'], 'submitted idle'],
    ['started', ['submit', 'execute'], 'running running'],
    ['evicted', ['submit', 'execute', 'evicted'], 'idle idle'],
    ['evicted and started again', ['submit', 'execute', 'evicted', 'execute'], 'running running'],
    ['suspended', ['submit', 'execute', 'suspended'], 'idle suspended'],
    ['continued', ['submit', 'execute', 'suspended', 'unsuspended'], 'running running'],
    ['held', ['submit', 'held'], 'submitted held'],
    ['released', ['submit', 'held', 'released'], 'submitted idle'],
    ['held while running', ['submit', 'execute', 'held'], 'idle held'],
    ['held, and evicted by that', ['submit', 'execute', 'held', 'evicted'], 'idle held'],
    ['aborted', ['submit', 'aborted'], 'cancelled removed htcondor-removed'],
    ['lost with its machine', ['submit', 'execute', 'disconnected', 'reconnect-failed'], 'idle idle'],
    ['lost by its shadow', ['submit', 'execute', 'shadow-exception'], 'idle idle'],
    ['read from the middle', ['execute'], 'running running'],
    ['ended, and nobody says how', ['execute', 'terminated'], 'failed completed exit-status-lost'],
    ['of a kind that nobody knows', ['submit', 'execute', 'other'], 'running running'],
  ] as const) {
    it(`${what}: ${expected}`, () => {
      expect(seen(after(...kinds.map((kind) => [kind] as const)))).to.equal(expected);
    });
  }

  it('end a job once, whatever comes after, but for a later start', () => {
    const ended = after(['execute'], ['terminated', { end: { exitCode: 3 } }]);
    expect(seen(ended)).to.equal('failed completed exit-status');
    for (const kind of ['aborted', 'held', 'evicted'] as const)
      expect(applyEvent(ended, event(kind))).to.equal(ended);
    const endedAt = 1000 * (ended.EnteredCurrentStatus ?? 0);
    expect(applyEvent(ended, event('execute', {}, endedAt)), 'the log is read again').to.equal(ended);
    const again = applyEvent(ended, event('execute', {}, endedAt + 1000));
    expect(stateOf(1, again, now, { ...options, queued: true })?.observation.status).to.equal('running');
    const end = applyEvent(again, event('terminated', { end: { exitCode: 0 } }));
    expect(seen(end)).to.equal('finished completed');
  });

  it('make the end before them doubtful, unless the log is read again', () => {
    const ended = after(['execute'], ['terminated', { end: { exitCode: 0 } }]);
    const endedAt = 1000 * (ended.EnteredCurrentStatus ?? 0);
    const kinds = [
      'evicted',
      'terminated',
      'aborted',
      'held',
      'released',
      'shadow-exception',
      'reconnect-failed',
    ] as const;
    for (const kind of kinds) {
      expect(applyEvent(ended, event(kind, {}, endedAt + 1000)), kind).to.equal(ended);
      expect(isBehindEnd(ended, event(kind, {}, endedAt + 1000)), kind).to.equal(true);
      expect(isBehindEnd(ended, event(kind, {}, endedAt - 1000)), kind).to.equal(false);
    }
    expect(isBehindEnd(ended, event('terminated', {}, endedAt))).to.equal(false);
    expect(isBehindEnd(ended, event('shadow-exception', {}, endedAt))).to.equal(true);
    expect(isBehindEnd(after(['execute']), event('held', {}, endedAt + 1000))).to.equal(false);
  });

  it('count a start once, though the schedd told of it before', () => {
    const ad = { JobStatus: 2, JobStartDate: s - 50, JobCurrentStartDate: s - 50, NumJobStarts: 1 };
    expect(applyEvent(ad, event('execute', {}, now - 50_000)).NumJobStarts).to.equal(1);
    expect(applyEvent(ad, event('execute', {}, now - 10_000)).NumJobStarts).to.equal(2);
  });

  it('tell a signal from an exit status', () => {
    const killed = after(['execute'], ['terminated', { end: { signal: 11 } }]);
    expect(stateOf(1, killed, now, options)?.observation).to.include({ status: 'failed', exitCode: 139 });
  });

  it('end a job as its last run ended, whatever an earlier one left in the ad', () => {
    const ad = { JobStatus: 2, ExitBySignal: true, ExitSignal: 15 };
    const ended = applyEvent(ad, event('terminated', { end: { exitCode: 0 } }));
    expect(seen(ended)).to.equal('finished completed');
  });

  it('keep the reason for a hold when the job is removed', () => {
    const ad = after(['held', { reason: 'no file' }], ['aborted', { reason: 'via condor_rm' }]);
    expect(stateOf(1, ad, now, options)?.observation.error?.message).to.equal(
      'removed: via condor_rm; it was held before: no file',
    );
  });
});

describe('a text of a job', () => {
  /** What is written of a job that was held for too long, and of one that was removed after that, as the schedd tells of it and as the log does. */
  const written = (text: string) => {
    const reasons = { HoldReason: text, RemoveReason: text, GridJobStatus: text };
    const raw = { ClusterId: 1, ProcId: 0, JobStatus: 5, EnteredCurrentStatus: s - 9999, ...reasons };
    const held = jobOf(raw, true)?.ad ?? {};
    const byLog = applyEvent({}, { kind: 'held', time: now - 1, cluster: 1, proc: 0, reason: text });
    const late = { ...byLog, EnteredCurrentStatus: s - 9999 };
    const states = [
      held,
      { ...held, JobStatus: 3 },
      late,
      applyEvent(late, { kind: 'aborted', time: now, cluster: 1, proc: 0, reason: text }),
    ];
    return states.flatMap((ad) => {
      const { observation, verdict } = stateOf(1, ad, now, options) ?? {};
      return [observation, verdict].flatMap((one) => (one ? [observationChange(one, false)] : []));
    });
  };

  it('is shown without a piece of a login of ours before its cut', () => {
    const login = 'Vt6T0kenOfOurLoginHs9';
    rememberSecret(login);
    for (let at = 970; at < 1000; at++) {
      const shown = written(`${'.'.repeat(at - 1)} ${login} ${'.'.repeat(900)}`);
      expect(JSON.stringify(shown), `at ${at}`).to.not.include('Vt6');
      expect((JSON.parse(shown[0]?.detail ?? '') as JobAd).HoldReason).to.have.length.at.most(1000);
    }
  });

  it('hole 3: is shown without a piece of a secret of others that begins before its cut', () => {
    for (const cut of [400, 1000])
      for (const before of [1, 60])
        for (const length of [100, 2000]) {
          const secret = 'hunter7'.repeat(length);
          for (const words of [
            `https://u:${secret}@host/x`,
            `{"password": "${secret}"}`,
            `--token '${secret}'`,
          ]) {
            const text = `${'.'.repeat(cut - before - 12)} ${words}`;
            const shown = written(text);
            expect(shown).to.have.length(6);
            expect(JSON.stringify(shown), `${words.slice(0, 12)} ${before} before ${cut}`).to.not.include(
              'hunter7',
            );
          }
        }
  });
});

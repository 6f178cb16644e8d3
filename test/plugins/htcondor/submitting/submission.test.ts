import { expect } from 'chai';
import { HTCondorError } from '../../../../src/clients/htcondor/errors.ts';
import type { CondorCode } from '../../../../src/clients/htcondor/errors.ts';
import type { WorkerToStart } from '../../../../src/plugins/contracts/index.ts';
import { CeTally } from '../../../../src/plugins/htcondor/place/ce-tally.ts';
import { RefusedByRule } from '../../../../src/plugins/htcondor/submitting/refused-by-rule.ts';
import { Submission } from '../../../../src/plugins/htcondor/submitting/submission.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { pluginContext } from '../../../support/plugin-context.ts';
import { recordingLog, workerOf } from '../../../support/samples.ts';

const { signal } = new AbortController();

describe('hole 1: a submission that fails', () => {
  /** What the commands of the payload make of it, and the rest of the text: undefined is well. */
  interface Fails {
    readonly submit?: CondorCode;
    readonly dryRun?: CondorCode;
    readonly dryRunWithout?: CondorCode;
    /** The first look alone fails. */
    readonly isPassing?: boolean;
    /** The schedd is called by another name once it was asked whether it has its queue. */
    readonly isRenamed?: boolean;
  }

  async function outcomeOf(
    { submit, dryRun, dryRunWithout, isPassing, isRenamed }: Fails,
    hasCommands = true,
  ) {
    let looks = 0;
    const fail = (code: CondorCode | undefined) => {
      if (code !== undefined)
        throw new HTCondorError({
          code,
          message: 'm',
          maybeDone: code === 'condor-unreachable' || code === 'condor-timeout',
        });
    };
    const schedd = {
      jobQueue: {
        requireNow: async () => undefined,
        otherName: isRenamed === true ? { code: 'htcondor-other-queue', message: 'm' } : undefined,
      },
      submissionHost: 'S',
      fenced: new Map(),
      refused: new Map(),
      fresh: new Map(),
      refusedByRule: new RefusedByRule(),
      submits: {
        begin: async (_: unknown, mayStart: () => void) => ({ onStart: mayStart, over: () => undefined }),
      },
      client: {
        submit: async (_: string, { onStart }: { readonly onStart: () => void }) => {
          onStart();
          fail(submit);
          return [{ cluster: 1, proc: 0 }];
        },
        dryRun: async (text: string) => {
          if (text === 'with' && isPassing === true && ++looks > 1) return [];
          fail(text === 'with' ? dryRun : dryRunWithout);
          return [];
        },
      },
    };
    const worker: WorkerToStart = {
      ...workerOf(1),
      ...(hasCommands && { payload: { submit: { rank: 'words' } } }),
    };
    const submission = new Submission({
      schedd: schedd as never,
      config: { ceList: [] } as never,
      context: pluginContext({ clock: new ManualClock(), log: recordingLog(), stateDir: '/none' }),
      tally: new CeTally(),
      texts: {
        template: async () => ({ environment: {} }),
        directory: async () => '/none',
        describe: (_: unknown, __: unknown, workers: readonly (typeof worker)[]) => ({
          description: workers.some(({ payload }) => payload?.submit !== undefined) ? 'with' : 'without',
          workers,
          rejected: new Map(),
        }),
      } as never,
      signal,
    });
    const outcome = (await submission.submit([worker])).get(1);
    return outcome?.kind === 'rejected'
      ? `${outcome.error.code}${outcome.permanent ? ' for good' : ''}`
      : outcome?.kind;
  }

  const rows: readonly (readonly [title: string, fails: Fails, outcome: string])[] = [
    [
      'is the fault of commands that cannot be read, whatever its words say',
      { submit: 'condor-auth', dryRun: 'condor-auth' },
      'condor-submit-wrong for good',
    ],
    [
      'so too where its words leave open whether the schedd has it',
      { submit: 'condor-unreachable', dryRun: 'condor-unreachable' },
      'condor-submit-wrong for good',
    ],
    ['is that of the schedd where they can be read', { submit: 'condor-auth' }, 'condor-auth'],
    ['leaves open whether it is done where they can be read', { submit: 'condor-unreachable' }, 'unknown'],
    [
      'is that of the template where the rest cannot be read either',
      { submit: 'condor-auth', dryRun: 'condor-auth', dryRunWithout: 'condor-auth' },
      'condor-auth',
    ],
    [
      "is nobody's where the second look has no end",
      { submit: 'condor-auth', dryRun: 'condor-timeout' },
      'condor-auth',
    ],
    [
      'sends nothing where the schedd is called by another name by then: its own may be that of another one',
      { isRenamed: true },
      'htcondor-other-queue',
    ],
    [
      'is told by its words where these are about the text',
      { submit: 'condor-submit-wrong' },
      'condor-submit-wrong for good',
    ],
  ];
  for (const [title, fails, expected] of rows)
    it(title, async () => {
      expect(await outcomeOf(fails)).to.equal(expected);
    });

  it('is not looked at a second time without commands of a payload', async () => {
    expect(await outcomeOf({ submit: 'condor-auth', dryRun: 'condor-auth' }, false)).to.equal('condor-auth');
  });
});

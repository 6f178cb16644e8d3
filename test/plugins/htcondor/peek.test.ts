import { expect } from 'chai';
import { type CondorCode, HTCondorError } from '../../../src/clients/htcondor/errors.ts';
import { HTCondorLogs, lastLines } from '../../../src/plugins/htcondor/logs.ts';
import type { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { workerOf } from '../../support/samples.ts';
import { until } from '../../support/until.ts';

describe('a look at a file of a running job of HTCondor', () => {
  const { signal } = new AbortController();
  const worker = {
    ...workerOf(3),
    handle: { batchID: '7.0', submissionHost: 'schedd', jobName: null },
  } as never;
  const request = { file: 'main.log', mostBytes: 100 };
  const error = (code: CondorCode) => new HTCondorError({ code, message: code, maybeDone: false });
  let clock: ManualClock;

  beforeEach(() => {
    clock = new ManualClock();
  });

  function peek(tailFile: (signal: AbortSignal) => Promise<Buffer>) {
    const client = { tailFile: (_job: unknown, _file: unknown, either: AbortSignal) => tailFile(either) };
    return new HTCondorLogs({ client } as unknown as HTCondorSchedd, clock).peek(worker, request, signal);
  }

  it('has no file where the starter of the job says so, or has no job any more', async () => {
    for (const code of ['condor-failed', 'condor-no-job'] as const)
      expect(await peek(() => Promise.reject(error(code))), code).to.equal(undefined);
  });

  it('fails where its machine does not answer, and where it takes too long', async () => {
    const codeOf = (look: Promise<unknown>) =>
      look.then(
        () => 'an answer',
        (failure: unknown) => (failure as HTCondorError).code,
      );
    expect(await codeOf(peek(() => Promise.reject(error('condor-unreachable'))))).to.equal(
      'condor-unreachable',
    );
    let isAsked = false;
    const hangs = (either: AbortSignal) =>
      new Promise<Buffer>((_, reject) => {
        isAsked = true;
        either.addEventListener('abort', () => {
          reject(error('condor-given-up'));
        });
      });
    const code = codeOf(peek(hangs));
    await until('the machine is asked', () => isAsked);
    await clock.advance(10_000);
    expect(await code).to.equal('condor-given-up');
  });
});

describe('the last lines of an output of HTCondor', () => {
  it('are as many as were asked for, with the one that has no end', () => {
    const last = (text: string) => [0, 1, 2, 9].map((lines) => lastLines(text, lines));
    expect(last('a\n\nb\n')).to.deep.equal(['', 'b\n', '\nb\n', 'a\n\nb\n']);
    expect(last('a\nb')).to.deep.equal(['', 'b', 'a\nb', 'a\nb']);
    expect(last('\n')).to.deep.equal(['', '\n', '\n', '\n']);
    expect(last('\n\n')).to.deep.equal(['', '\n', '\n\n', '\n\n']);
    expect(last('')).to.deep.equal(['', '', '', '']);
    expect(lastLines('a\nb\n', undefined)).to.equal('a\nb\n');
  });
});

import { expect } from 'chai';
import { isOfPayload } from '../../../../src/plugins/htcondor/submitting/own-fault.ts';
import type { WorkerToStart } from '../../../../src/worker/worker.ts';

const description = 'universe = vanilla\nrank = 1\n+A = 2\nqueue 1\n';

describe('a refusal of condor_submit', () => {
  const cases: readonly (readonly [
    what: string,
    submit: Readonly<Record<string, string>> | undefined,
    error: Partial<Parameters<typeof isOfPayload>[0]>,
    isOwn: boolean,
  ])[] = [
    ['of a line that the payload brought', { rank: '1' }, { line: 2 }, true],
    ['of an attribute that the payload brought', { '+A': '2' }, { line: 3 }, true],
    ['of a line of the template', { '+A': '2' }, { line: 1 }, false],
    [
      'by the words of a command',
      { concurrency_limits: ',' },
      { message: 'invalid concurrency limits' },
      true,
    ],
    ['without line or words', { rank: '1' }, { message: 'frank words' }, false],
    ['of workers without commands', undefined, { line: 2 }, false],
    ['for another cause', { rank: '1' }, { line: 2, code: 'condor-unreachable' }, false],
  ];
  for (const [what, submit, error, isOwn] of cases)
    it(`${what} is ${isOwn ? '' : 'not '}the fault of the payload`, () => {
      const worker = { payload: { ...(submit && { submit }) } } as unknown as WorkerToStart;
      const whole = { code: 'condor-submit-wrong', line: undefined, message: 'no', ...error } as const;
      expect(isOfPayload(whole, description, [worker])).to.equal(isOwn);
    });
});

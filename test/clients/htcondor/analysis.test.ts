import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseAnalysis, parseSummary, slotAnalyses } from '../../../src/clients/htcondor/analysis.ts';

/** Recorded from HTCondor 23.9.6. */
const recorded = (name: string) =>
  readFileSync(join(import.meta.dirname, '../../fixtures/condor-analysis', `${name}.txt`), 'utf8');

describe('the summary of an analysis', () => {
  it('each job has its numbers', () => {
    expect([...parseSummary(recorded('summary'))]).to.deep.equal([
      ['1.0', { meeting: 1, refusing: 1, available: 0 }],
      ['1.2', { meeting: 0, refusing: 0, available: 0 }],
      ['1.3', { meeting: 0, refusing: 0, available: 0 }],
    ]);
  });

  it('a row counts only if it is whole', () => {
    const text = recorded('summary');
    const end = text.lastIndexOf('1.3');
    for (let length = end; length < text.lastIndexOf('\n'); length++)
      expect(parseSummary(text.slice(0, length)).has('1.3'), `${length}`).to.equal(false);
  });

  it('a row without members is read, as HTCondor writes it for ads without an autocluster', () => {
    expect(
      parseSummary('1.0                       3           1           0          0         2 pilot\n').get(
        '1.0',
      ),
    ).to.deep.equal({
      meeting: 3,
      refusing: 1,
      available: 2,
    });
  });

  it('an owner may have blanks and numbers in the name', () => {
    const row =
      '7.0           2/2                    12           1           0          0        11 a b 1/1 0\n';
    expect(parseSummary(row).get('7.0')).to.deep.equal({ meeting: 12, refusing: 1, available: 11 });
  });

  it('a job with two rows has none: an owner may have written one of them', () => {
    const row = (available: number) => `2.0  1/1  1  0  0  0  ${available} x\n`;
    expect(parseSummary(`1.0  1/1  1  0  0  0  1 evil\n${row(1)}${row(0)}`).size).to.equal(1);
  });

  it('nothing is read in a text of another kind', () => {
    for (const text of ['', 'Error: no such file\n', '1.0\n', 'JobId 1.0 2/2 1 1 0 0 0 x\n'])
      expect(parseSummary(text).size, text).to.equal(0);
  });
});

describe('the analysis of a job', () => {
  /** The recorded one with another text in a step that nothing meets, and of which the steps behind it make use. */
  const withText = (text: string) => recorded('job-gpus').replace(/^(\[0\]\s+)\d+(\s+).*$/m, `$10$2${text}`);

  it('hole 8: takes no brackets that a user wrote for numbers of steps', () => {
    for (const text of [
      'TARGET.Foo == "[0][0][0]"',
      'regexp("wn[0][1][2]", TARGET.Machine)',
      'TARGET.List[0] == MY.Own()[0]',
      'TARGET.Foo == "\\"[0] [0]',
      '[0] && [0] && [7]',
    ])
      expect(parseAnalysis(withText(text))?.failing, text).to.include(text);
  });

  it('hole 8: shows no condition that grows with each step', () => {
    const steps = Array.from(
      { length: 100 },
      (_, at) => `[${at + 1001}]  ${at < 99 ? 1 : 0}  [${at + 1000}] && [${at + 1000}]`,
    );
    const text = recorded('job-gpus').replace(
      /(reduces to these conditions:\s*\n)/,
      `$1[1000]  1  TARGET.Foo == 1\n${steps.join('\n')}\n`,
    );
    expect(text).to.include('[1100]');
    expect(parseAnalysis(text)?.failing).to.deep.equal(['TARGET.GPUs >= RequestGPUs']);
  });

  it('the condition that no slot meets is named', () => {
    const analysis = parseAnalysis(recorded('job-gpus'));
    expect(analysis).to.deep.include({ failing: ['TARGET.GPUs >= RequestGPUs'], rejected: 1, refusing: 0 });
    expect(analysis?.values.get('RequestGPUs')).to.equal('2');
    expect(analysis?.values.get('RequestMemory')).to.equal('3000');
  });

  it('an alternative is named as a whole', () => {
    expect(parseAnalysis(recorded('job-either'))?.failing).to.deep.equal([
      'TARGET.HasFoo is true || regexp("nix$",OpSys)',
      'TARGET.GPUs >= RequestGPUs',
    ]);
  });

  it('conditions that different slots meet are named together', () => {
    expect(parseAnalysis(recorded('job-both'))?.failing).to.deep.equal([
      'TARGET.Memory >= RequestMemory && TARGET.GPUs >= RequestGPUs',
    ]);
  });

  it('a slot that refuses the job names its own condition', () => {
    const [analysis] = slotAnalyses(recorded('slot-start'));
    expect(analysis?.failing).to.deep.equal(['Owner == "alice"', 'TARGET.WantX is true']);
  });

  it('a slot without a failing condition in a met alternative names none of its parts', () => {
    const [analysis] = slotAnalyses(recorded('slot-limits'));
    expect(analysis?.failing).to.deep.equal([
      'TARGET.RequestGPUs is undefined || MY.GPUs >= TARGET.RequestGPUs',
    ]);
  });

  it('a text that is cut off is no analysis', () => {
    const text = recorded('job-gpus');
    const end = text.indexOf('reject your job because');
    for (const length of [0, 100, text.indexOf('[7]'), end])
      expect(parseAnalysis(text.slice(0, length))).to.equal(undefined);
    expect(parseAnalysis('Unknown job 9.0\n')).to.equal(undefined);
  });
});

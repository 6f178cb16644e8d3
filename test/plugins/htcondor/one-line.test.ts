import { expect } from 'chai';
import fc from 'fast-check';
import { checkLines } from '../../../src/plugins/htcondor/one-line.ts';
import { describeBatch } from '../../../src/plugins/htcondor/template/describe.ts';
import { batchOptions, ce, submitterConfig, templateOf } from '../../support/htcondor-batch.ts';
import { workerOf } from '../../support/samples.ts';

const found = (options: object, queue = 'Q') =>
  checkLines(submitterConfig(options), queue).map(({ pointer, message }) => `${pointer} ${message}`);
const why = 'has a new line or another control character; it must be one line of text';

describe('an option of an HTCondor queue that is not one line', () => {
  it('is a mistake at its place, however deep', () => {
    expect(found({ pilot_args: 'a\nb' })).to.deep.equal([`/pilot_args "a\\nb" ${why}`]);
    expect(found({ ceList: [{ ce_endpoint: 'a' }, { ce_endpoint: 'b\r' }] })).to.deep.equal([
      `/ceList/1/ce_endpoint "b\\r" ${why}`,
    ]);
    expect(found({ customSubmitAttributes: { a: '1\nqueue 9' } })).to.deep.equal([
      `/customSubmitAttributes/a "1\\nqueue 9" ${why}`,
    ]);
  });

  it('is one in the name of the queue, too', () => {
    expect(found({}, 'a\nb')).to.deep.equal([` the name of the queue, "a\\nb", ${why}`]);
  });

  it('is none where nobody reads it, or nothing ends the line', () => {
    expect(found({ comment: 'two\nlines' })).to.deep.equal([]);
    expect(found({ pilot_args: `"'$(x) \\ queue 100 ü\u2028` }, 'a "b" \\')).to.deep.equal([]);
  });

  const described = ({ queue = 'Q', endpoint = 'ce', group = 'g', attribute = '1' }) => {
    const config = submitterConfig({
      logDir: '/l',
      accounting_group: group,
      customSubmitAttributes: { attribute },
    });
    const options = batchOptions('/l', { queue, config, ce: { ...ce, endpoint } });
    return describeBatch(templateOf('executable = /bin/true\nqueue\n'), [workerOf(1)], options);
  };

  for (const [what, values] of [
    ['a queue', { queue: 'a\nqueue 100' }],
    ['a CE', { endpoint: 'ce\nqueue 100' }],
    ['an option', { group: 'g\nqueue 100' }],
    ['an attribute', { attribute: '1\nqueue 100' }],
    ['an option that takes the next line with it', { group: 'g\\' }],
    ['an attribute that does', { attribute: '1\\' }],
  ] as const) {
    it(`never becomes a command, even if nobody checked it: ${what}`, () => {
      let batch: ReturnType<typeof described>;
      try {
        batch = described(values);
      } catch (error) {
        expect(error).to.include({ code: 'htcondor-value' });
        return;
      }
      expect(batch.workers).to.deep.equal([]);
      expect(batch.rejected.get(1)).to.include({ code: 'htcondor-value' });
    });
  }

  it('does not get into a description of any one-line values', () => {
    // Whatever stands in them, there is one queue statement.
    const text = fc.string({
      minLength: 1,
      unit: fc.constantFrom('queue 100', ..."$(){}'#,;=+".split(''), '"', '\\'),
    });
    // The last one has its own check, above.
    const option = text.map((one) => one.replace(/\\+$/, '') || 'x');
    fc.assert(
      fc.property(text, text, option, (queue, endpoint, group) => {
        const { description } = described({ queue, endpoint, group });
        const lines = description.split('\n');
        return (
          lines.filter((line) => /^\s*queue\b/i.test(line)).length === 1 &&
          !lines.some((line) => line.endsWith('\\'))
        );
      }),
    );
  });
});

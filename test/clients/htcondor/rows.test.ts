import { expect } from 'chai';
import { Matchmaker } from '../../../src/clients/htcondor/matchmaker.ts';
import { Rows } from '../../../src/clients/htcondor/rows.ts';
import type { CondorTools, Tool } from '../../../src/clients/htcondor/tools.ts';

const { signal } = new AbortController();

describe('rows of values of jobs', () => {
  /** Writes rows as HTCondor does: nothing of a value is escaped. */
  const written = (fields: readonly string[], rows: readonly (readonly string[])[]) =>
    rows.map((values) => `${[fields[0], ...values, fields.at(-1)].join('\t')}\n`).join('');

  it('are read in pieces of any size', () => {
    const rows = new Rows(['ClusterId', 'Owner']);
    const text = written(rows.fields, [
      ['1', '"a"'],
      ['2', 'undefined'],
    ]);
    const read = Array.from(text).flatMap((piece) => rows.push(piece));
    expect([read, rows.complete]).to.deep.equal([
      [
        ['1', '"a"'],
        ['2', 'undefined'],
      ],
      true,
    ]);
  });

  it('hole 8: cost their own job alone where a value has tabs or ends of lines, whatever it makes them look like', () => {
    for (const value of ['"a\tb"', '"\n"', '"\n\n2\t9\n"', '"x\n"1234"\t2\t9\t"1234"\n"', '"\n\t"']) {
      const rows = new Rows(['ClusterId', 'RequestFoo']);
      const text = written(rows.fields, [
        ['1', value],
        ['2', '5'],
        ['3', value],
      ]);
      expect(rows.push(text), JSON.stringify(value)).to.deep.equal([undefined, ['2', '5'], undefined]);
      expect(rows.complete).to.equal(true);
    }
  });

  it('hole 8: are cut into no more values than a row has, where one of them is nothing but tabs', () => {
    const rows = new Rows(['ClusterId', 'RequestFoo']);
    const text = written(rows.fields, [['1', '\t'.repeat(2_000_000)]]);
    const cuts: number[] = [];
    const strings = String.prototype as unknown as {
      split: (this: string, ...how: unknown[]) => string[];
    };
    const { split } = strings;
    strings.split = function (...how) {
      const parts = split.apply(this, how);
      cuts.push(parts.length);
      return parts;
    };
    try {
      expect(rows.push(text)).to.deep.equal([undefined]);
    } finally {
      strings.split = split;
    }
    expect(Math.max(...cuts)).to.equal(5);
  });

  it('are not whole without the end of the last, and nothing else stands among them', () => {
    const rows = new Rows(['ClusterId']);
    expect(rows.push(`${rows.fields[0] ?? ''}\t1\n`)).to.deep.equal([]);
    expect(rows.complete).to.equal(false);
    expect(() => new Rows(['ClusterId']).push('1\n')).to.throw(SyntaxError, '"1" is no row of a job');
  });

  it('hole 8: of the matchmaking change no other job, and are of no job that was not asked about', async () => {
    const tools = {
      succeed: async ({ args, onOutput }: Tool) => {
        const fields = args.slice(args.indexOf('-af:Vt') + 1);
        const forged = `x\n4000000000\t7\n${fields[0] ?? ''}`;
        onOutput?.(
          written(fields, [
            ['1', '1'],
            ['2', `"x\n1\t99999\n"`],
            ['4000000000', '7'],
            ['0', '7'],
            ['3', forged.slice(0, 3)],
            ['4', '4'],
          ]),
        );
      },
    } as unknown as CondorTools;
    const jobs = Array.from({ length: 4 }, () => new Map([['requestfoo', '1']]));
    const values = await new Matchmaker(tools).withJobs(jobs, (laid) =>
      laid.values(['RequestFoo'], (row) => row, signal),
    );
    expect(values).to.deep.equal([['1'], undefined, undefined, ['4']]);
  });
});

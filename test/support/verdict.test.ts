import { expect } from 'chai';
import type { LedgerEntry } from './ledger.ts';
import { faultsOf, isSpent } from './ledger.ts';
import { besides, type Failure, linesOf, type MochaRun, repeatsOf, verdictOf } from './verdict.ts';

const of = (file: string, own = 'waits', message = 'expected 4 to equal 3'): Failure => ({
  file,
  title: `a queue ${own}`,
  own,
  message,
  stack: `AssertionError: ${message}\n    at Context.<anonymous> (file:///x/${file}:164:30)`,
  seconds: 12.4,
  stalled: 61,
});
const system = (index: number) => `test/integration/kubernetes-${index}.test.ts`;
const unit = 'test/util/clock.test.ts';
const files = [unit, ...Array.from({ length: 9 }, (_, index) => system(index))];
const suite = { files, ledger: [] as LedgerEntry[], isRepeated: true };
const failed = (...failures: Failure[]): MochaRun => ({ status: failures.length, tests: 100, failures });
const passed: MochaRun = { status: 0, tests: 1, failures: [] };
const entry = { title: 'a queue waits', commit: 'a'.repeat(40), mechanism: 'a deadline', times: 1 };

/** The verdict on a first run whose repeated files end as told. */
const judge = (first: MochaRun, again: (file: string) => MochaRun, ledger: LedgerEntry[] = []) => {
  const repeats = repeatsOf([first], { ...suite, ledger });
  return verdictOf([first], repeats, new Map(repeats.again.map((file) => [file, again(file)])));
};

describe('a run of the tests', () => {
  it('is green where nothing failed, and repeats nothing', () => {
    expect(repeatsOf([passed], suite)).to.deep.equal({ again: [], refused: new Map() });
    expect(judge(passed, () => passed).result).to.equal('green');
  });

  it('is red in a soak, which repeats nothing', () => {
    const { again, refused } = repeatsOf([failed(of(system(1)))], { ...suite, isRepeated: false });
    expect(again).to.deep.equal([]);
    expect([...refused]).to.deep.equal([[system(1), 'a soak repeats nothing']]);
  });

  it('repeats a failed file once, and is green with a flaky file where it passes alone', () => {
    const first = failed(of(system(1)), of(system(1), 'wakes'));
    expect(repeatsOf([first], suite).again).to.deep.equal([system(1)]);
    const { result, flaky, broken } = judge(first, () => passed);
    expect({ result, broken }).to.deep.equal({ result: 'green', broken: [] });
    expect(flaky.map(({ own }) => own)).to.deep.equal(['waits', 'wakes']);
  });

  it('is red where a file fails again, also without telling of a failure', () => {
    const first = failed(of(system(1)));
    const same = judge(first, () => failed(of(system(1))));
    expect(same).to.deep.include({ result: 'red', flaky: [] });
    expect(same.broken.map(({ why }) => why)).to.deep.equal(['failed again alone']);
    const unloaded = judge(first, () => ({ status: 1, tests: 0, failures: [] }));
    expect(unloaded.result).to.equal('red');
    expect(unloaded.broken.map(({ why }) => why)).to.deep.equal(['its file failed again alone']);
  });

  const certain: readonly (readonly [what: string, failure: Failure, why: RegExp])[] = [
    ['a unit test', of(unit), /unit test/],
    ['a property', of(system(1), 'holds', 'Property failed after 3 tests\n{ seed: 1 }'), /property/],
    ['a file that mocha does not name', of('unknown'), /no file of the suite/],
    ['a pending test', of(system(1), 'is', 'Pending test forbidden'), /rule of the suite/],
  ];
  for (const [what, failure, why] of certain)
    it(`is red for ${what}, which is never repeated`, () => {
      const first = failed(failure);
      expect(repeatsOf([first], suite).again).to.deep.equal([]);
      const { result, broken } = judge(first, () => passed);
      expect(result).to.equal('red');
      expect(broken[0]?.why).to.match(why);
    });

  it('is red for a file that the ledger names twice already', () => {
    const file = system(1);
    const twice = [{ ...entry, file, times: 2 }];
    expect(isSpent(file, twice)).to.equal(true);
    expect(isSpent(file, [{ ...entry, file }])).to.equal(false);
    expect(
      isSpent(file, [
        { ...entry, file },
        { ...entry, file, title: 'another' },
      ]),
    ).to.equal(true);
    expect(judge(failed(of(file)), () => passed, twice).broken[0]?.why).to.match(/the ledger/);
  });

  it('is green with three flaky files, and red with four', () => {
    const many = (count: number) => failed(...Array.from({ length: count }, (_, index) => of(system(index))));
    expect(judge(many(3), () => passed).result).to.equal('green');
    const { result, reasons } = judge(many(4), () => passed);
    expect(result).to.equal('red');
    expect(reasons).to.deep.equal(['4 files passed only alone, and more than 3 are no chance']);
  });

  it('repeats six failed files, and of seven none', () => {
    const many = (count: number) => failed(...Array.from({ length: count }, (_, index) => of(system(index))));
    expect(repeatsOf([many(6)], suite).again).to.have.length(6);
    const seven = repeatsOf([many(7)], suite);
    expect(seven.again).to.deep.equal([]);
    const { result, broken } = verdictOf([many(7)], seven, new Map());
    expect(result).to.equal('red');
    expect(broken).to.have.length(7);
  });

  it('is red where mocha ended badly and told of no failure', () => {
    const badly: MochaRun = { status: 1, tests: 0, failures: [] };
    expect(judge(badly, () => passed)).to.deep.include({
      result: 'red',
      reasons: ['mocha ended with 1 and told of no failure'],
    });
  });

  it('is red where one part of it told of no failure, whatever the others told', () => {
    const badly: MochaRun = { status: 1, tests: 5, failures: [] };
    const { again, refused } = repeatsOf([badly, failed(of(system(1)))], suite);
    expect([again, [...refused]]).to.deep.equal([[], [['', 'mocha ended with 1 and told of no failure']]]);
    const parts = [passed, failed(of(system(1))), failed(of(system(2)))];
    expect(repeatsOf(parts, suite).again).to.deep.equal([system(1), system(2)]);
  });

  it('is red where mocha died after it had told of a failure', () => {
    const first = { ...failed(of(system(1))), tests: undefined };
    expect(judge(first, () => passed)).to.deep.include({
      result: 'red',
      reasons: ['mocha died before its end, with 1'],
    });
  });

  it('is red where the repeated file ends well without a test, or before its end', () => {
    const first = failed(of(system(1)));
    expect(judge(first, () => ({ status: 0, tests: 0, failures: [] })).result).to.equal('red');
    expect(judge(first, () => ({ status: 0, tests: undefined, failures: [] })).result).to.equal('red');
  });

  it('is red where mocha told of a failure and ended well', () => {
    const first = { ...failed(of(system(1))), status: 0 };
    expect(judge(first, () => passed).result).to.equal('red');
  });

  it('is red for a reason beside the tests', () => {
    const repeats = repeatsOf([passed], suite);
    expect(verdictOf([passed], repeats, new Map(), ['coverage is below its bounds']).result).to.equal('red');
  });
});

describe('the end of the output', () => {
  const times = [
    { file: system(1), began: 100, ended: 900, failed: [500] },
    { file: system(2), began: 0, ended: 600, failed: [] },
    { file: system(3), began: 0, ended: 400, failed: [] },
    { file: system(4), began: 450, ended: Infinity, failed: [] },
  ];
  const told = (first: MochaRun, again: (file: string) => MochaRun) =>
    linesOf({ verdict: judge(first, again), tests: 3912, seconds: 662.3, stalled: 61, times });

  it('names the files that ran when a test failed', () => {
    expect(besides(system(1), times)).to.deep.equal([system(2), system(4)]);
    expect(besides('test/x.test.ts', times)).to.deep.equal([]);
  });

  it('tells what failed, where, why, what ran beside it, and the command that repeats it', () => {
    const failure = of(system(1), "it's slow");
    expect(told(failed(failure), () => failed(failure))).to.deep.equal([
      'RED  1 of 3912 tests failed, 11:02, cpu stalled 61 %',
      ` ${system(1)}:164  a queue it's slow`,
      '   expected 4 to equal 3',
      `   took 12.4 s, cpu stalled 61 % of the minute before; beside it: ${system(2)}, ${system(4)}; failed again alone`,
      `   ./scripts/test ${system(1)} --fgrep 'it'\\''s slow'`,
    ]);
  });

  it('tells of a flaky test with its reason', () => {
    expect(told(failed(of(system(1))), () => passed)).to.deep.equal([
      'GREEN  3912 tests, 1 flaky file, 11:02, cpu stalled 61 %',
      `flaky: ${system(1)}:164  a queue waits: expected 4 to equal 3 (cpu stalled 61 %; passed alone): put it into test/support/flaky.json`,
    ]);
  });

  it('has ten lines at most, whatever failed', () => {
    const long = 'x'.repeat(5000);
    const many = Array.from({ length: 40 }, (_, index) => of(system(1), `${index}`, `${long}\n\n  ${long}`));
    const lines = told(failed(...many), () => failed(...many));
    expect(lines).to.have.length(10);
    expect(lines.at(-1)).to.equal(' and 36 more: test-results/');
    for (const line of lines) expect(line.length).to.be.lessThan(302);
  });
});

describe('the ledger of flaky tests', () => {
  const facts = {
    titlesOf: (file: string) => (file === 'test/gone.test.ts' ? [] : ['a queue waits']),
    ageOf: (commit: string) => ({ ['a'.repeat(40)]: 100, ['b'.repeat(40)]: 101 })[commit],
  };
  const good = { ...entry, file: system(1) };

  it('may have five entries of tests that are there, each with a mechanism, and none of more than 100 commits', () => {
    expect(faultsOf([good, good, good, good, good], facts)).to.deep.equal([]);
    // The clone may be without that commit.
    expect(faultsOf([{ ...good, commit: 'c'.repeat(40) }], facts)).to.deep.equal([]);
    // A hook is no test of the file.
    expect(faultsOf([{ ...good, title: 'a queue "after each" hook for "waits"' }], facts)).to.deep.equal([]);
  });

  const faults: readonly (readonly [what: string, entries: LedgerEntry[], fault: RegExp])[] = [
    ['a sixth entry', [good, good, good, good, good, good], /^6 entries/],
    ['no mechanism', [{ ...good, mechanism: ' ' }], /has no mechanism$/],
    ['a test that is gone', [{ ...good, title: 'a queue sleeps' }], /no such test/],
    ['a file that is gone', [{ ...good, file: 'test/gone.test.ts' }], /no such test/],
    ['an entry that is too old', [{ ...good, commit: 'b'.repeat(40) }], /is 101 commits old/],
    ['a short commit', [{ ...good, commit: 'abc' }], /no 40 digits/],
    ['no number of times', [{ ...good, times: 0 }], /no number/],
  ];
  for (const [what, entries, fault] of faults)
    it(`is refused with ${what}`, () => {
      expect(faultsOf(entries, facts)).to.have.length(1);
      expect(faultsOf(entries, facts)[0]).to.match(fault);
    });
});

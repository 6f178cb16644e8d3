import { existsSync, readFileSync, utimesSync } from 'node:fs';
import { dirname, join, matchesGlob, normalize } from 'node:path';
import { expect } from 'chai';
import { byFile, durationsReport, keptOf } from '../support/durations.ts';
import { isBuilt, modules } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import {
  assignments,
  filesInOrder,
  gateVariable,
  isLeftToSoak,
  keptDurations,
  ofGate,
  testFiles,
  type Tier,
  tierNames,
  tierOf,
} from '../support/tiers.ts';
import { plant, root } from './copied-tree.ts';

/** The modules of tests that a test file imports, directly or through others. Types start nothing. */
function importsOf(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file) || !existsSync(join(root, file))) return found;
  found.add(file);
  const text = readFileSync(join(root, file), 'utf8');
  for (const [, from = ''] of text.matchAll(/^(?:import|export)(?! type\b)[^;']* from '(\.[^']+)';/gm)) {
    const path = normalize(join(dirname(file), from));
    if (path.startsWith('test/')) importsOf(path, found);
  }
  return found;
}

describe('the tiers of the suite', () => {
  it('share all test files among them, each in exactly one', () => {
    const tiers = tierNames.flatMap((tier) => filesInOrder(tier));
    expect(tiers).to.have.length(new Set(tiers).size);
    expect(tiers).to.have.members(testFiles());
    expect(filesInOrder(undefined)).to.have.members(tiers);
    expect(() => filesInOrder('quick')).to.throw('there is no tier quick; there are unit, promises, systems');
  });

  for (const [name, patterns] of Object.entries(assignments))
    it(`name files that there are: ${name}`, () => {
      const files = testFiles();
      // Braces name several files, and each must be there.
      const each = patterns.flatMap((pattern) => {
        const [whole = '', inside] = /\{([^}]*)\}/.exec(pattern) ?? [];
        return inside === undefined ? [pattern] : inside.split(',').map((one) => pattern.replace(whole, one));
      });
      const dead = each.filter((pattern) => !files.some((file) => matchesGlob(file, pattern)));
      expect(dead).to.deep.equal([]);
    });

  it('leave no unit test to the soak, and each backend its crash points', () => {
    const left = testFiles().filter(isLeftToSoak);
    expect(left.filter((file) => tierOf(file) === 'unit')).to.deep.equal([]);
    for (const kept of ['promise-1', 'kubernetes', 'htcondor'])
      expect(left).not.to.include(`test/integration/${kept}-crash-points.test.ts`);
  });

  it('run of some tests those cases alone in a landing that it keeps, and all elsewhere', () => {
    const odd = (one: number) => one % 2 === 1;
    expect(ofGate([1, 2, 3], odd, { [gateVariable]: '1' })).to.deep.equal([1, 3]);
    expect(ofGate([1, 2, 3], odd, {})).to.deep.equal([1, 2, 3]);
    expect(() => ofGate([2, 4], odd, { [gateVariable]: '1' })).to.throw('none of these cases');
  });

  /** Modules that start something, with the first tier that may use them. */
  const starters: readonly [module: string, tier: Tier][] = [
    ['test/support/site.ts', 'promises'],
    ['test/support/kdc.ts', 'promises'],
    ['test/support/postgresql.ts', 'promises'],
    ['test/support/local-plugins.ts', 'promises'],
    ['test/support/pod-runner.ts', 'promises'],
    ['test/support/kubernetes.ts', 'systems'],
    ['test/support/htcondor.ts', 'systems'],
  ];
  for (const [module, first] of starters) {
    it(`let no test before ${first} use ${module}`, () => {
      const early = testFiles().filter(
        (file) => tierNames.indexOf(tierOf(file)) < tierNames.indexOf(first) && importsOf(file).has(module),
      );
      expect(early).to.deep.equal([]);
      expect(testFiles().filter((file) => importsOf(file).has(module))).not.to.deep.equal([]);
    });
  }

  it('begin with the longest file', () => {
    const kept = keptDurations();
    const measured = filesInOrder(undefined).flatMap((file) => kept.get(file) ?? []);
    expect(measured).to.deep.equal(measured.toSorted((one, other) => other - one));
  });
});

describe('the durations of a run', () => {
  const timed = [
    { file: 'test/util/clock.test.ts', title: 'a clock goes', ms: 400 },
    { file: 'test/integration/reload.test.ts', title: 'a reload reloads', ms: 9000 },
    { file: 'test/integration/reload.test.ts', title: '"before each" hook a reload', ms: 2600 },
  ];

  it('are shown by tier, by file and by test', () => {
    const report = durationsReport(timed, 7000);
    expect(report).to.match(/^durations, s; the whole run took 7\.0\n/);
    expect(report).to.contain(
      '     0.4  unit: 1 files\n    11.6  promises: 1 files\n     0.0  systems: 0 files\n',
    );
    expect(report).to.contain(
      '    11.6  test/integration/reload.test.ts\n     0.4  test/util/clock.test.ts\n',
    );
    expect(report).to.contain('     9.0  test/integration/reload.test.ts: a reload reloads\n');
  });

  it('are kept of the files that take a second', () => {
    expect(byFile(timed).map(([file]) => file)[0]).to.equal('test/integration/reload.test.ts');
    expect(keptOf(timed)).to.deep.equal({ 'test/integration/reload.test.ts': 12 });
  });
});

describe('the program that tests start', () => {
  const built = 'dist/cli/main.js';
  const source = 'src/cli/main.ts';
  const at = (tree: string, path: string, seconds: number) => {
    utimesSync(join(tree, path), seconds, seconds);
  };
  const tree = (): string => {
    const directory = temporaryDirectory();
    plant(directory, { [source]: '', [built]: '', 'tsconfig.json': '', 'tsconfig.build.json': '' });
    for (const path of [source, 'tsconfig.json', 'tsconfig.build.json']) at(directory, path, 1000);
    at(directory, built, 1001);
    return directory;
  };

  it('is that of dist/ where everything there is younger than its source', () => {
    const one = tree();
    expect(isBuilt(one)).to.equal(true);
    expect(modules(one)).to.deep.equal({ directory: join(one, 'dist'), extension: 'js' });
  });

  it('is never that of an old dist/', () => {
    for (const path of [source, 'tsconfig.json', 'tsconfig.build.json']) {
      const one = tree();
      at(one, path, 1002);
      expect(modules(one), path).to.deep.equal({ directory: join(one, 'src'), extension: 'ts' });
    }
    const grown = tree();
    plant(grown, { 'src/cli/new.ts': '' });
    at(grown, 'src/cli/new.ts', 1000);
    expect(isBuilt(grown), 'a source that was never built').to.equal(false);
  });
});

import { readdirSync } from 'node:fs';
import { join, matchesGlob, resolve } from 'node:path';
import { expect } from 'chai';
import { affectedBy, areas, chosenOf, type Importers, importersIn } from './affected.ts';
import { testFiles } from './tiers.ts';

const root = resolve(import.meta.dirname, '../..');

describe('the tests that a change affects', () => {
  const importers: Importers = new Map([
    ['src/util/a.ts', new Set(['src/util/b.ts', 'test/util/a.test.ts'])],
    ['src/util/b.ts', new Set(['src/util/a.ts', 'src/daemon/daemon.ts', 'test/util/b.test.ts'])],
    ['src/daemon/daemon.ts', new Set(['test/support/site.ts'])],
    ['test/support/site.ts', new Set(['test/integration/http.test.ts'])],
  ]);
  const tests = [
    'test/util/a.test.ts',
    'test/util/b.test.ts',
    'test/integration/http.test.ts',
    'test/x.test.ts',
  ];
  const of = (...changes: string[]) => {
    const { byImport, byArea } = affectedBy(changes, tests, importers);
    return [[...byImport], [...byArea]];
  };

  it('import it, also through others, and through no module that starts the whole program', () => {
    expect(of('src/util/a.ts')).to.deep.equal([['test/util/a.test.ts', 'test/util/b.test.ts'], []]);
    expect(of('src/util/b.ts')[0]).to.have.members(['test/util/a.test.ts', 'test/util/b.test.ts']);
    expect(of('test/support/site.ts')).to.deep.equal([['test/integration/http.test.ts'], []]);
  });

  it('are about its area, and those that changed themselves', () => {
    expect(of('src/http/pages.ts')).to.deep.equal([[], ['test/integration/http.test.ts']]);
    expect(of('test/x.test.ts', 'src/gone.ts')).to.deep.equal([['test/x.test.ts'], []]);
  });

  it('run in a landing as far as three minutes hold, imports before areas, and in any case where they changed themselves', () => {
    const [a, b, http, x] = tests as [string, string, string, string];
    const chosen = (seconds: readonly [string, number][], ...changes: string[]) =>
      chosenOf(changes, tests, new Map(seconds), importers);
    expect(chosen([], 'src/util/a.ts', 'src/http/pages.ts')).to.deep.equal({ run: [a, b, http], named: [] });
    const long = [
      [a, 100],
      [b, 81],
      [http, 99],
      [x, 1000],
    ] as [string, number][];
    const changes = ['src/util/a.ts', 'src/http/pages.ts'];
    expect(chosen(long, ...changes)).to.deep.equal({ run: [b, http], named: [a] });
    expect(chosen(long, ...changes, x)).to.deep.equal({ run: [x, b, http], named: [a] });
    expect(chosen(long, ...changes, a, x)).to.deep.equal({ run: [a, x, b, http], named: [] });
  });

  it('are found for each folder of the sources', () => {
    const files = testFiles();
    const folders = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
    const without = folders.filter((file) => !areas.some(([change]) => matchesGlob(file, change)));
    expect(without).to.deep.equal([]);
    const dead = areas.filter(([, pattern]) => !files.some((file) => matchesGlob(file, pattern)));
    expect(dead).to.deep.equal([]);
  });

  it('are few for most modules', () => {
    const files = testFiles();
    const all = importersIn();
    const modules = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join('src', path));
    const counts = modules
      .map((module) => affectedBy([module], files, all).byImport.size)
      .sort((a, b) => a - b);
    expect(counts[Math.floor(counts.length / 2)]).to.be.at.most(40);
  });
});

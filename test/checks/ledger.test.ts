import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { faultsOf, readLedger } from '../support/ledger.ts';
import { root } from './copied-tree.ts';

/** Titles of the tests of a file, with those of their groups. */
function titlesOf(file: string): readonly string[] {
  if (!existsSync(join(root, file))) return [];
  const args = ['--no-parallel', '--dry-run', '--reporter', 'json', file];
  const mocha = join(root, 'node_modules/.bin/mocha');
  const text = execFileSync(mocha, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const { tests } = JSON.parse(text) as { tests: readonly { readonly fullTitle: string }[] };
  return tests.map(({ fullTitle }) => fullTitle);
}

/** Undefined for a commit that the clone does not have. */
function ageOf(commit: string): number | undefined {
  try {
    const args = ['-c', `safe.directory=${root}`, 'rev-list', '--count', `${commit}..HEAD`];
    return Number(
      execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    );
  } catch {
    return undefined;
  }
}

describe('the ledger of flaky tests', () => {
  it('owes nothing that is due', () => {
    expect(faultsOf(readLedger(), { titlesOf, ageOf })).to.deep.equal([]);
  });

  it('knows the tests of a file, and none of a file that is gone', () => {
    expect(titlesOf('test/checks/ledger.test.ts')).to.include(
      'the ledger of flaky tests owes nothing that is due',
    );
    expect(titlesOf('test/checks/gone.test.ts')).to.deep.equal([]);
  });

  it('counts the commits since an entry where the clone has its commit', () => {
    expect(ageOf('f'.repeat(40))).to.equal(undefined);
    expect(ageOf('HEAD')).to.be.oneOf([0, undefined]);
  });
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from './copied-tree.ts';
import { type LockFile, unfitLicences } from './licences.ts';

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

describe('licences', () => {
  it('of all packages in the lock file go with Apache-2.0', () => {
    const lock = JSON.parse(read('package-lock.json')) as LockFile;
    expect(Object.keys(lock.packages).length).to.be.greaterThan(100);
    expect(unfitLicences(lock)).to.deep.equal([]);
  });

  it('are refused where they do not, or are not told', () => {
    const planted: [name: string, license: string | undefined][] = [
      ['copyleft', 'GPL-3.0-only'],
      ['network', 'AGPL-3.0-or-later'],
      ['untold', undefined],
      ['unknown', 'SEE LICENSE IN LICENSE.md'],
      ['both', 'MIT AND GPL-2.0-only'],
      ['nested', '(MIT OR GPL-2.0-only) AND LGPL-3.0-only'],
      ['either', '(MIT OR GPL-2.0-only)'],
      ['all', 'MIT AND ISC'],
    ];
    const packages = Object.fromEntries(
      planted.map(([name, license]) => [name, license === undefined ? {} : { license }]),
    );
    const refused = unfitLicences({ packages }).map((line) => line.replace(/:.*/, ''));
    expect(refused).to.deep.equal(['copyleft', 'network', 'untold', 'unknown', 'both', 'nested']);
  });

  it('are told of this package, whose text goes with it', () => {
    const { license, files } = JSON.parse(read('package.json')) as { license?: string; files: string[] };
    expect(license).to.equal('Apache-2.0');
    expect(files).to.include('LICENSE');
    expect(read('LICENSE')).to.match(/^\s*Apache License\s+Version 2\.0, January 2004\s/);
    expect(read('LICENSE')).to.contain('END OF TERMS AND CONDITIONS');
  });
});

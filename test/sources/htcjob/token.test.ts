import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { isTokenOf, readEventKey, tokenOf } from '../../../src/sources/htcjob/job/token.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const key = Buffer.from('k'.repeat(32));

describe('the token of a job', () => {
  it('is of one attempt at one job, and of one key', () => {
    const tokens = [
      tokenOf(key, { uid: 'a', index: 1 }),
      tokenOf(key, { uid: 'a', index: 11 }),
      tokenOf(key, { uid: 'a1', index: 1 }),
      tokenOf(key, { uid: 'a",1,"', index: 1 }),
      tokenOf(Buffer.from('l'.repeat(32)), { uid: 'a', index: 1 }),
    ];
    expect(new Set(tokens).size).to.equal(tokens.length);
    const [own = '', ...others] = tokens;
    expect(isTokenOf(key, { uid: 'a', index: 1 }, own)).to.equal(true);
    for (const token of [...others, '', `${own} `, own.slice(1)])
      expect(isTokenOf(key, { uid: 'a', index: 1 }, token), token).to.equal(false);
  });
});

describe('the key of the tokens', () => {
  let directory: string;
  beforeEach(() => {
    directory = temporaryDirectory();
  });

  it('is made once, for its user alone, and stays', () => {
    const file = join(directory, 'htcjob', 'event.key');
    const first = readEventKey(file, true);
    expect(readEventKey(file, true)).to.deep.equal(first);
    expect(readFileSync(file)).to.deep.equal(first);
    expect((statSync(file).mode & 0o777).toString(8)).to.equal('600');
    expect(readdirSync(join(directory, 'htcjob'))).to.deep.equal(['event.key']);
  });

  it('is not made where its file is named, and has to be long enough', () => {
    const file = join(directory, 'key');
    expect(() => readEventKey(file, false)).to.throw(/key cannot be used|cannot be used: ENOENT/);
    writeFileSync(file, 'short');
    expect(() => readEventKey(file, false)).to.throw(/it has 5 bytes, and a key needs 32 or more/);
  });
});

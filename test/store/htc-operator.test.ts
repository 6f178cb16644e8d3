import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'chai';
import { readHtcOperator } from '../../src/store/sqlite/htc-operator.ts';
import { ThresherError } from '../../src/worker/errors.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const form = 'htcjobName varchar, jobId char(10), status integer, tempDir varchar';

describe('the table of htc-operator', () => {
  const file = join(temporaryDirectory(), 'htcjobs.db');

  function make(sql: string): void {
    const db = new Database(file);
    db.exec(`DROP TABLE IF EXISTS htcjobs; ${sql}`);
    db.close();
  }
  const refused = (path = file): string => {
    try {
      readHtcOperator(path);
    } catch (error) {
      if (error instanceof ThresherError) return `${error.code}: ${error.message}`;
      throw error;
    }
    return 'read';
  };

  it('is read as it stands there, in the order of its rows', () => {
    make(`CREATE TABLE htcjobs(${form}, uniqid integer);
      INSERT INTO htcjobs VALUES ('zero', '7.0', 1, '/data/tmp_jobs/scratch-1', 5577006791947779410), (NULL, 8.5, 'x', NULL, NULL)`);
    const rows = readHtcOperator(file);
    expect(rows[0]).to.deep.equal({
      name: 'zero',
      jobId: '7.0',
      status: 1,
      directory: '/data/tmp_jobs/scratch-1',
      submission: '5577006791947779410',
    });
    expect(rows[1]).to.deep.equal({ name: '', jobId: '8.5', status: NaN, directory: '', submission: '' });
  });

  it('is refused with the words for what the file is instead', () => {
    make('SELECT 1');
    expect(refused()).to.match(
      /^htcjob-import-file: \S+htcjobs.db: it has no table htcjobs; the file of htc-/,
    );
    make(`CREATE TABLE htcjobs(${form}, other integer)`);
    expect(refused()).to.match(
      /its table htcjobs has no column uniqid; that of htc-operator has htcjobName,/,
    );
    expect(refused('/nowhere/htcjobs.db')).to.match(
      /^htcjob-import-file: \/nowhere\/htcjobs.db: there is no database/,
    );
    expect(refused('/tmp')).to.match(/^htcjob-import-file: \/tmp: \/tmp is a directory/);
    const text = join(temporaryDirectory(), 'text');
    writeFileSync(text, 'no database '.repeat(100));
    expect(refused(text)).to.match(/^htcjob-import-file: \S+: the file is not a database/);
  });
});

import { expect } from 'chai';
import Database from 'better-sqlite3';
import { KeptStatements } from '../../src/store/sqlite/statements.ts';

describe('statements of a database', () => {
  let prepared: string[];
  let kept: KeptStatements;

  beforeEach(() => {
    const database = new Database(':memory:');
    prepared = [];
    kept = new KeptStatements({
      prepare(text) {
        prepared.push(text);
        return database.prepare(text);
      },
      close: () => database.close(),
    });
  });

  afterEach(() => {
    kept.close();
  });

  it('are prepared once for each text', () => {
    for (const value of [1, 2, 3])
      expect(kept.prepare('SELECT ? AS v').all([value])).to.deep.equal([{ v: value }]);
    kept.prepare('SELECT 2');
    expect(prepared).to.deep.equal(['SELECT ? AS v', 'SELECT 2']);
  });

  it('see a table that was changed after they were prepared', () => {
    kept.prepare('CREATE TABLE t (a)').run([]);
    kept.prepare('INSERT INTO t VALUES (1)').run([]);
    expect(kept.prepare('SELECT * FROM t').all([])).to.deep.equal([{ a: 1 }]);
    kept.prepare('ALTER TABLE t ADD COLUMN b DEFAULT 2').run([]);
    expect(kept.prepare('SELECT * FROM t').all([])).to.deep.equal([{ a: 1, b: 2 }]);
  });

  it('go when two hundred others were used since, and long ones at once', () => {
    const long = `SELECT '${'x'.repeat(4000)}'`;
    kept.prepare(long);
    kept.prepare(long);
    expect(prepared).to.have.length(2);
    kept.prepare('SELECT 0');
    for (let number = 1; number <= 199; number++) kept.prepare(`SELECT ${number}`);
    kept.prepare('SELECT 0');
    expect(prepared).to.have.length(202);
    kept.prepare('SELECT 200');
    kept.prepare('SELECT 0');
    expect(prepared).to.have.length(203);
    kept.prepare('SELECT 1');
    expect(prepared).to.have.length(204);
  });
});

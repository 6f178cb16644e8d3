import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { sqliteWords } from '../store/sqlite-words.ts';
import { type Files, root } from './copied-tree.ts';

/** The one folder that may know SQLite. */
const inside = 'src/store/sqlite/';
/** Another database has its own SQL, in which some of these words mean something else. */
const other = 'src/store/postgresql/';

/** By file and line, words outside of SQLite's folder that only SQLite understands. */
function leaks(files: Files): string[] {
  return Object.entries(files)
    .filter(([file]) => !file.startsWith(inside) && !file.startsWith(other))
    .flatMap(([file, text]) =>
      text.split('\n').flatMap((line, at) =>
        sqliteWords(line)
          // Outside of the store nothing asks a database, and a plus begins an attribute of HTCondor.
          .filter((word) => file.startsWith('src/store/') || !word.startsWith('+'))
          .map((word) => `${file}:${at + 1}: ${word}`),
      ),
    );
}

function sources(): Files {
  const files = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)));
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

describe('the seam of the store', () => {
  it('leaves no word of SQLite outside of src/store/sqlite/', () => {
    expect(leaks(sources())).to.deep.equal([]);
  });

  it('has the words of SQLite behind it, and the check knows them', () => {
    const behind = Object.entries(sources()).filter(([file]) => file.startsWith(inside));
    const seen = new Set(behind.flatMap(([, text]) => sqliteWords(text)));
    for (const word of ['json_each', '->>', 'INDEXED BY', 'VACUUM', 'pragma(', 'better-sqlite3'])
      expect([...seen]).to.include(word);
  });

  it('is reported as broken for each kind of planted leak', () => {
    const planted: Files = {
      'src/store/sql/a.ts': 'sql`worker_id IN (SELECT value FROM json_each(${ids}))`\n',
      'src/store/sql/b.ts': '\nsql`UPDATE workers SET status = o.value ->> 2`\n',
      'src/store/sql/c.ts': "sql`FROM workers INDEXED BY workers_alive`\nsql.raw('PRAGMA cache_size')\n",
      'src/store/sql/d.ts': 'sql<boolean>`+instance = ${id}`\n',
      'src/store/sql/e.ts': 'sql`VACUUM`\nsql`max(value, excluded.value)`\n',
      'src/store/sql/f.ts': "sql`strftime('%s', at)`\nsql`error_code IS NOT ${code}`\n",
      'src/daemon/g.ts': "import Database from 'better-sqlite3';\ndb.pragma('data_version');\n",
      'src/store/store.ts': 'sql`SELECT name FROM sqlite_master`\nnew SqliteDialect({ database })\n',
      'src/store/tables.ts': "'id INTEGER PRIMARY KEY AUTOINCREMENT'\nsql`INSERT OR IGNORE INTO queues`\n",
      'src/store/sqlite/h.ts': "db.pragma('journal_mode = WAL')\n",
    };
    expect(leaks(planted)).to.deep.equal([
      'src/store/sql/a.ts:1: json_each',
      'src/store/sql/b.ts:2: ->>',
      'src/store/sql/c.ts:1: INDEXED BY',
      'src/store/sql/c.ts:2: PRAGMA',
      'src/store/sql/d.ts:1: +instance =',
      'src/store/sql/e.ts:1: VACUUM',
      'src/store/sql/e.ts:2: max(value, excluded.value)',
      'src/store/sql/f.ts:1: strftime',
      'src/store/sql/f.ts:2: IS NOT ${code}`',
      'src/daemon/g.ts:1: better-sqlite3',
      'src/daemon/g.ts:2: pragma(',
      'src/daemon/g.ts:2: data_version',
      'src/store/store.ts:1: sqlite_master',
      'src/store/store.ts:2: SqliteDialect',
      'src/store/tables.ts:1: AUTOINCREMENT',
      'src/store/tables.ts:2: INSERT OR IGNORE',
    ]);
  });

  it('lets SQL pass that every database reads', () => {
    const sound: Files = {
      'src/store/sql/a.ts':
        'sql`error_code IS NOT NULL AND other IS DISTINCT FROM ${code} AND max(id) > 0`\nconst next = a + instance;\n',
    };
    expect(leaks(sound)).to.deep.equal([]);
  });
});

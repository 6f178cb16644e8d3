import { closeSync, openSync, readSync } from 'node:fs';

/** Ends of the names of a database's files: its own, and those that SQLite puts beside it. */
const suffixes = ['', '-wal', '-shm', '-journal'];

/** The files of a database, whether they are there or not. */
export function filesOf(database: string): string[] {
  return suffixes.map((suffix) => database + suffix);
}

/** Whether a file is a database, by the words that every SQLite database begins with. */
export function isDatabase(file: string): boolean {
  const magic = 'SQLite format 3\0';
  const start = Buffer.alloc(magic.length);
  const opened = openSync(file, 'r');
  try {
    return readSync(opened, start, 0, magic.length, 0) === magic.length && start.toString('latin1') === magic;
  } finally {
    closeSync(opened);
  }
}

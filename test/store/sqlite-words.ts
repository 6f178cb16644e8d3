/** Words that only SQLite understands, or that reach for it. */
const words: readonly RegExp[] = [
  /better-sqlite3/,
  /\bSqliteDialect\b/,
  /\bjson_(?:each|tree|extract|array_length|group_array|group_object)\b/,
  /->>|->(?=\s*['\d])/,
  /\b(?:NOT )?INDEXED(?: BY)?\b/,
  /\bPRAGMA\b|\bpragma\(/,
  /\bdata_version\b/,
  /\bVACUUM\b/,
  /\bsqlite_\w+/,
  /\bAUTOINCREMENT\b/,
  /\b_?rowid_?\b/,
  /\b(?:strftime|julianday|unixepoch)\b|\bdatetime\(/,
  /\bINSERT OR \w+/,
  /\bGLOB\b/,
  /\bIFNULL\(/i,
  /\bIS NOT (?!NULL\b|DISTINCT\b)\S+/,
  /(?<!\.)\b(?:max|min)\([^()]*,[^()]*\)/,
  // The sign that keeps SQLite from using an index.
  /(?<=[\s(`'"])\+(?:\w+\.)?[a-z]\w* (?:=|IN\b|<|>)/,
];

/** The first of each kind that a text has: of a query, or of a source that may hold queries. */
export function sqliteWords(text: string): string[] {
  return words.flatMap((word) => word.exec(text)?.[0] ?? []);
}

import { messageOf, ThresherError } from '../../worker/errors.ts';
import { storeError } from './errors.ts';
import { openReadOnly } from './raw.ts';

/** A job in the table of htc-operator. Nothing of it is checked: its users may have changed it by hand. */
export interface HtcOperatorRow {
  /** Name of the HTCJob, which has no namespace there. */
  readonly name: string;
  /** "CLUSTER.PROC" */
  readonly jobId: string;
  /** 1: active, 4: return code 0, 7: another. 10 more: its output was fetched, and 20 more: copied. */
  readonly status: number;
  /** Directory from which it was submitted. */
  readonly directory: string;
  /** Number of the submission. A text: it has up to 63 bits. */
  readonly submission: string;
}

const needed = ['htcjobName', 'jobId', 'status', 'tempDir', 'uniqid'] as const;

/**
 * Reads the table `htcjobs` of htc-operator, and changes nothing.
 * @throws ThresherError `htcjob-import-file`
 */
export function readHtcOperator(file: string): readonly HtcOperatorRow[] {
  const wrong = (message: string, cause?: unknown) =>
    new ThresherError('htcjob-import-file', `${file}: ${message}`, { file }, { cause });
  try {
    const db = openReadOnly(file);
    try {
      const columns = db.prepare('PRAGMA table_info(htcjobs)').all() as readonly { readonly name: string }[];
      if (columns.length === 0)
        throw wrong('it has no table htcjobs; the file of htc-operator is /data/sqlite/htcjobs.db');
      const names = new Set(columns.map(({ name }) => name.toLowerCase()));
      const missing = needed.filter((name) => !names.has(name.toLowerCase()));
      if (missing.length > 0)
        throw wrong(
          `its table htcjobs has no column ${missing.join(', ')}; that of htc-operator has ${needed.join(', ')}`,
        );
      const rows = db
        .prepare(`SELECT ${needed.join(', ')} FROM htcjobs ORDER BY rowid`)
        .safeIntegers()
        .raw();
      return (rows.all() as unknown[][]).map(([name, jobId, status, directory, submission]) => ({
        name: textOf(name),
        jobId: textOf(jobId),
        status: Number(status ?? NaN),
        directory: textOf(directory),
        submission: textOf(submission),
      }));
    } finally {
      db.close();
    }
  } catch (error) {
    const known = storeError(error, file);
    throw known.code === 'htcjob-import-file' ? known : wrong(messageOf(known), error);
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'bigint' || typeof value === 'number' ? String(value) : '';
}

import type Database from 'better-sqlite3';
import { messageOf } from '../../worker/errors.ts';
import { type CheckResult, countQueries, type Finding, rules } from '../sql/check-rules.ts';
import { isDamage } from './errors.ts';
import { damagesOf, openReadOnly, type Version, versionOf } from './raw.ts';

/**
 * Checks a database file of whatever version, also beside a daemon: all is read from one moment.
 * @throws ThresherError `store-missing`, `store-readonly`: there is nothing that could be checked
 */
export function checkDatabase(file: string): CheckResult {
  const db = openReadOnly(file);
  try {
    db.exec('BEGIN');
    return checkOpen(db);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { findings: [{ check: 'integrity', message: messageOf(error) }], counts: {} };
  } finally {
    db.close();
  }
}

function checkOpen(db: Database.Database): CheckResult {
  const damages = damagesOf(db).map((message) => ({ check: 'integrity', message }));
  const version = versionOf(db);
  if (version === undefined) {
    const message = 'this is a database, but none of thresher';
    return { findings: [...damages, { check: 'not-thresher', message }], counts: {} };
  }
  const findings = [...damages, ...versionFindings(version)];
  // This version does not know the meaning of a newer version's tables.
  if (version.unknown.length > 0) return { findings, counts: {} };
  try {
    const broken = rules.flatMap(({ check, query, message }): Finding[] => {
      const { count, example } = db.prepare(query).get() as { count: number; example: string | number };
      return count === 0 ? [] : [{ check, message: message(count, example) }];
    });
    const counts = Object.fromEntries(
      Object.entries(countQueries).map(([name, query]) => [name, db.prepare(query).pluck().get() as number]),
    );
    return { findings: [...findings, ...broken], counts };
  } catch (error) {
    // The findings in a damaged file are worth more to an operator than the place where reading ended.
    if (damages.length === 0 || !isDamage(error)) throw error;
    return { findings, counts: {} };
  }
}

function versionFindings({ unknown, pending }: Version): Finding[] {
  if (unknown.length > 0) {
    const message = `it was written by a newer version of thresher: it has ${unknown.join(', ')}`;
    return [{ check: 'newer', message }];
  }
  if (pending.length === 0) return [];
  const message = `it was not brought up to date yet: the daemon of this version does that at its start (${pending.join(', ')})`;
  return [{ check: 'migration-pending', message }];
}

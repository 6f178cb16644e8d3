import { nameOf, type PostgresqlOptions } from '../../util/postgresql-options.ts';
import { type CheckResult, countQueries, type Finding, rules } from '../sql/check-rules.ts';
import { steps } from '../sqlite/migrations.ts';
import { postgresqlError } from './errors.ts';
import { openSession } from './session.ts';

/**
 * Looks for contradictions between rows, all read from one moment, also beside a daemon. Damage of its files is for PostgreSQL's
 * own tools (pg_amcheck).
 * @throws ThresherError as `openBeside`
 */
export async function checkPostgresql(options: PostgresqlOptions): Promise<CheckResult> {
  const use = { application: 'thresher command', mayTakeLong: true, readOnly: true };
  try {
    const client = await openSession(options, use);
    const first = async <Row>(text: string): Promise<Row | undefined> =>
      (await client.query(text)).rows[0] as Row | undefined;
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      const there = await first<{ there: boolean }>(
        `SELECT to_regclass('kysely_migration') IS NOT NULL AS there`,
      );
      if (there?.there !== true)
        return {
          findings: [{ check: 'not-thresher', message: 'no daemon ever ran on this database' }],
          counts: {},
        };
      const applied = (await client.query<{ name: string }>('SELECT name FROM kysely_migration')).rows;
      const findings = versionFindings(applied.map(({ name }) => name));
      if (findings.some(({ check }) => check === 'newer')) return { findings, counts: {} };
      for (const { check, query, message } of rules) {
        const { count, example } = (await first<{ count: number; example: string | number }>(query)) ?? {
          count: 0,
          example: '',
        };
        if (count > 0) findings.push({ check, message: message(count, example) });
      }
      const counts: Record<string, number> = {};
      for (const [name, query] of Object.entries(countQueries))
        counts[name] = (await first<{ count: number }>(query))?.count ?? 0;
      return { findings, counts };
    } finally {
      await client.end().catch(() => undefined);
    }
  } catch (error) {
    throw postgresqlError(error, nameOf(options));
  }
}

function versionFindings(applied: readonly string[]): Finding[] {
  const unknown = applied.filter((name) => !(name in steps));
  if (unknown.length > 0) {
    const message = `it was written by a newer version of thresher: it has ${unknown.join(', ')}`;
    return [{ check: 'newer', message }];
  }
  const pending = Object.keys(steps).filter((name) => !applied.includes(name));
  if (pending.length === 0) return [];
  const message = `it was not brought up to date yet: the daemon of this version does that at its start (${pending.join(', ')})`;
  return [{ check: 'migration-pending', message }];
}

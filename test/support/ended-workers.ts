import type Database from 'better-sqlite3';

/** Rows of ended workers, straight into the database: many thousands of them in a moment. Each has two transitions. */
export function insertEnded(
  db: Database.Database,
  {
    from,
    count,
    ...row
  }: { from: number; count: number; status: string; endTime: number; sweptTime: number | null },
): void {
  const insert =
    db.prepare(`INSERT INTO workers (worker_id, instance, name, queue, computing_site, origin_kind,
    origin_uid, origin_index, placement, config_id, status, attempt, n_core, min_ram_count, max_disk_count, max_walltime,
    resource_type, job_type, pilot_type, prod_source_label, creation_time, end_time, modification_time, swept_time)
    VALUES (@id, 'factory', 'w', 'Q', 'Q', 'fill', 'Q', @id, 'local:/w', 1, @status, 1, 1, 2000, 0, 0, 'SCORE', 'managed',
    'PR', 'managed', 1, @endTime, @endTime, @sweptTime)`);
  const step = db.prepare(
    `INSERT INTO transitions (worker_id, at, to_status, source) VALUES (?, 1, ?, 'submitter')`,
  );
  db.transaction(() => {
    for (let id = from; id < from + count; id++) {
      insert.run({ id, ...row });
      step.run(id, 'pending');
      step.run(id, row.status);
    }
  })();
}

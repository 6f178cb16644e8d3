import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Reason } from '../../worker/reason.ts';
import type { Control, QueueReport, QueueStore } from '../queues.ts';
import type { Tables } from '../tables.ts';
import type { FactoryRows } from './open-database.ts';

export class SqlQueueStore implements QueueStore {
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor({ db, instance }: FactoryRows) {
    this.#db = db;
    this.#instance = instance;
  }

  async configId(queue: string, snapshot: string, at: number): Promise<number> {
    const digest = createHash('sha256').update(snapshot).digest('hex');
    const row = await this.#db
      .insertInto('configs')
      .values({ instance: this.#instance, queue, digest, snapshot, creation_time: at, used_time: at })
      .onConflict((conflict) =>
        conflict.columns(['instance', 'queue', 'digest']).doUpdateSet({ used_time: at }),
      )
      .returning('config_id')
      .executeTakeFirstOrThrow();
    return row.config_id;
  }

  async snapshot(configId: number): Promise<{ queue: string; snapshot: string } | undefined> {
    return this.#db
      .selectFrom('configs')
      .select(['queue', 'snapshot'])
      .where('config_id', '=', configId)
      .executeTakeFirst();
  }

  async snapshotsOf(queue: string): Promise<{ configId: number; snapshot: string }[]> {
    const rows = await this.#db
      .selectFrom('configs')
      .select(['config_id', 'snapshot'])
      .where('instance', '=', this.#instance)
      .where('queue', '=', queue)
      .orderBy('used_time', 'desc')
      .orderBy('config_id', 'desc')
      .execute();
    return rows.map((row) => ({ configId: row.config_id, snapshot: row.snapshot }));
  }

  async report(report: Omit<QueueReport, 'control'>): Promise<void> {
    const row = {
      queue_status: report.queueStatus,
      limits: JSON.stringify(report.limits),
      reasons: JSON.stringify(report.reasons),
      report_time: report.reportTime,
    };
    await this.#db
      .insertInto('queues')
      .values({ instance: this.#instance, queue: report.queue, ...row })
      .onConflict((conflict) => conflict.columns(['instance', 'queue']).doUpdateSet(row))
      .execute();
  }

  async all(): Promise<QueueReport[]> {
    const rows = await this.#db
      .selectFrom('queues')
      .selectAll()
      .where('instance', '=', this.#instance)
      .orderBy('queue')
      .execute();
    return rows.map((row) => ({
      queue: row.queue,
      queueStatus: row.queue_status,
      limits: JSON.parse(row.limits) as QueueReport['limits'],
      reasons: JSON.parse(row.reasons) as Reason[],
      reportTime: row.report_time,
      ...withControl(toControl(row)),
    }));
  }

  async control(queue: string): Promise<Control | undefined> {
    const row = await this.#db
      .selectFrom('queues')
      .select(['control', 'control_reason', 'control_time'])
      .where('instance', '=', this.#instance)
      .where('queue', '=', queue)
      .executeTakeFirst();
    return row && toControl(row);
  }

  async setControl(queue: string, control: Control | null): Promise<boolean> {
    const result = await this.#db
      .updateTable('queues')
      .set({
        control: control?.mode ?? null,
        control_reason: control?.reason ?? null,
        control_time: control?.since ?? null,
      })
      .where('instance', '=', this.#instance)
      .where('queue', '=', queue)
      .executeTakeFirst();
    return result.numUpdatedRows > 0n;
  }

  async forget(queue: string): Promise<void> {
    await this.#db
      .deleteFrom('queues')
      .where('instance', '=', this.#instance)
      .where('queue', '=', queue)
      .execute();
  }
}

function toControl(row: {
  readonly control: Control['mode'] | null;
  readonly control_reason: string | null;
  readonly control_time: number | null;
}): Control | undefined {
  if (row.control === null) return undefined;
  return { mode: row.control, reason: row.control_reason ?? '', since: row.control_time ?? 0 };
}

function withControl(control: Control | undefined): { control?: Control } {
  return control === undefined ? {} : { control };
}

import type { Kysely } from 'kysely';
import type { ErrorCode } from '../codes/codes.ts';
import { isWorkerStatus, type WorkerStatus } from '../worker/status.ts';
import type { Tables } from './tables.ts';

/** What an operator can ask of a running daemon. */
export type Command =
  | { readonly kind: 'pause'; readonly queue: string; readonly reason: string }
  | { readonly kind: 'drain'; readonly queue: string; readonly reason: string }
  | { readonly kind: 'resume'; readonly queue: string }
  | { readonly kind: 'kill'; readonly ids: readonly number[] }
  | {
      readonly kind: 'kill-queue';
      readonly queue: string;
      readonly statuses?: readonly WorkerStatus[] | undefined;
    }
  | { readonly kind: 'sweep'; readonly orphans: boolean };

export interface CommandResult {
  readonly ok: boolean;
  /** One sentence for the operator. */
  readonly message: string;
  /** Why it was not done, where that has a code of its own. */
  readonly code?: ErrorCode;
}

export interface OpenCommand {
  readonly id: number;
  readonly command: Command;
}

/** Commands wait here until the daemon takes them up: they outlive both sides. */
export class CommandStore {
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor(db: Kysely<Tables>, instance: string) {
    this.#db = db;
    this.#instance = instance;
  }

  async add(command: Command, at: number): Promise<number> {
    const { kind, ...params } = command;
    const row = await this.#db
      .insertInto('commands')
      .values({ instance: this.#instance, kind, params: JSON.stringify(params), creation_time: at })
      .returning('id')
      .executeTakeFirstOrThrow();
    return row.id;
  }

  /** Commands without a result, in the order they came: also those that a daemon took up and died on. */
  async open(): Promise<OpenCommand[]> {
    const rows = await this.#db
      .selectFrom('commands')
      .select(['id', 'kind', 'params'])
      .where('instance', '=', this.#instance)
      .where('result', 'is', null)
      .orderBy('id')
      .execute();
    return rows.map((row) => ({
      id: row.id,
      command: { kind: row.kind, ...(JSON.parse(row.params) as object) } as Command,
    }));
  }

  async take(id: number, at: number): Promise<void> {
    await this.#db.updateTable('commands').set({ taken_time: at }).where('id', '=', id).execute();
  }

  async finish(id: number, result: CommandResult): Promise<void> {
    await this.#db
      .updateTable('commands')
      .set({ result: JSON.stringify(result) })
      .where('id', '=', id)
      .execute();
  }

  async result(id: number): Promise<CommandResult | undefined> {
    const row = await this.#db
      .selectFrom('commands')
      .select('result')
      .where('id', '=', id)
      .executeTakeFirst();
    return row?.result == null ? undefined : (JSON.parse(row.result) as CommandResult);
  }
}

/** "submitted,running" to statuses; undefined when one is none. */
export function parseStatuses(text: string): WorkerStatus[] | undefined {
  const parts = text.split(',').map((part) => part.trim());
  return parts.every(isWorkerStatus) ? parts : undefined;
}

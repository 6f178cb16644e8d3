import type { Kysely } from 'kysely';
import type { Command, CommandResult, CommandStore, OpenCommand } from '../commands.ts';
import type { Tables } from '../tables.ts';
import type { FactoryRows } from './open-database.ts';

export class SqlCommandStore implements CommandStore {
  readonly #db: Kysely<Tables>;
  readonly #instance: string;

  constructor({ db, instance }: FactoryRows) {
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

  async take(id: number, at: number): Promise<number> {
    const row = await this.#db
      .updateTable('commands')
      .set((eb) => ({ taken_time: eb.fn.coalesce('taken_time', eb.val(at)) }))
      .where('id', '=', id)
      .returning('taken_time')
      .executeTakeFirst();
    return row?.taken_time ?? at;
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

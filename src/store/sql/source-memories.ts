import type { SourceMemoryStore } from '../source-memories.ts';
import type { FactoryRows } from './open-database.ts';

export class SqlSourceMemoryStore implements SourceMemoryStore {
  readonly #rows: FactoryRows;

  constructor(rows: FactoryRows) {
    this.#rows = rows;
  }

  async read(source: string, name: string): Promise<string | undefined> {
    const { db, instance } = this.#rows;
    const row = await db
      .selectFrom('source_memories')
      .select('content')
      .where('instance', '=', instance)
      .where('source', '=', source)
      .where('name', '=', name)
      .executeTakeFirst();
    return row?.content;
  }

  async write(source: string, name: string, content: string): Promise<void> {
    const { db, instance } = this.#rows;
    await db
      .insertInto('source_memories')
      .values({ instance, source, name, content })
      .onConflict((conflict) => conflict.columns(['instance', 'source', 'name']).doUpdateSet({ content }))
      .execute();
  }

  async remove(source: string, name: string): Promise<void> {
    const { db, instance } = this.#rows;
    await db
      .deleteFrom('source_memories')
      .where('instance', '=', instance)
      .where('source', '=', source)
      .where('name', '=', name)
      .execute();
  }
}

import type { Selectable } from 'kysely';
import type { WorkersTable } from './tables.ts';

/**
 * Facts of a worker that become known after its intent, under their names in the code. A change may bring each of them and a
 * record shows each of them: a further one is a line here, one in `tables.ts`, and a migration.
 */
export const factColumns = {
  nativeStatus: 'native_status',
  exitCode: 'native_exit_code',
  node: 'node_id',
  computingElement: 'computing_element',
  submitTime: 'submit_time',
  startTime: 'start_time',
  endTime: 'end_time',
} as const satisfies Readonly<Record<string, keyof WorkersTable>>;

/** Null: not known, or not yet. Times are ms UTC. */
export type WorkerFacts = {
  readonly [Fact in keyof typeof factColumns]: WorkersTable[(typeof factColumns)[Fact]];
};

const facts = Object.entries(factColumns) as readonly (readonly [keyof WorkerFacts, keyof WorkersTable])[];

/** Fills in the facts of a row. They are set one by one: a list may have every worker there is. */
export function setFacts(record: object, row: Selectable<WorkersTable>): asserts record is WorkerFacts {
  const known = record as Record<string, unknown>;
  for (const [fact, column] of facts) known[fact] = row[column];
}

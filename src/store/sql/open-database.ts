import type { Kysely } from 'kysely';
import type { ThresherError } from '../../worker/errors.ts';
import type { Dialect } from '../dialect.ts';
import type { Tables } from '../tables.ts';

/** An open database: everything that a second kind of database has to bring. Counts and sums come from it as numbers. */
export interface OpenDatabase {
  /** Its file; errors name it. */
  readonly file: string;
  readonly db: Kysely<Tables>;
  readonly dialect: Dialect;
  /** Whether another process wrote since the last call: nearly free, since it is asked several times a second. */
  changedElsewhere(): boolean;
  /** Gives the space of deleted rows back to the disk. */
  vacuum(): Promise<void>;
  /** Takes out of the database's log what deleted rows left there; @returns whether it could: a reader may be in the way. */
  emptyLog(): Promise<boolean>;
  /** An error of the database as one with a stable code. */
  errorOf(error: unknown): ThresherError;
  close(): Promise<void>;
}

/** The rows of one factory in a database. */
export interface FactoryRows extends Pick<OpenDatabase, 'db' | 'dialect'> {
  /** The factory's id: the queries touch no row of another one. */
  readonly instance: string;
}

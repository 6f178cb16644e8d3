import type { Kysely } from 'kysely';
import type { ThresherError } from '../../worker/errors.ts';
import type { LeaseHolder } from '../lease-holder.ts';
import type { SharedOut, ShareStore } from '../shares.ts';
import type { Dialect } from '../dialect.ts';
import type { Tables } from '../tables.ts';

/** By table. */
export type LastIds = ReadonlyMap<string, number>;

/** An open database: everything that a second kind of database has to bring. Counts and sums come from it as numbers. */
export interface OpenDatabase {
  /** Its file, or its address; errors name it. */
  readonly file: string;
  readonly db: Kysely<Tables>;
  readonly dialect: Dialect;
  /** Whether another process wrote since the last call: nearly free, since it is asked several times a second. */
  changedElsewhere(): boolean;
  /** Whether this process may act for the factory: a lease may have run out. */
  mayAct(): boolean;
  /** What daemons that share a factory agree on, as this one changes it. */
  readonly shares?: ShareStore;
  /** Who shares this factory, and who has what. */
  sharedOut?(instance: string): Promise<SharedOut>;
  /** The daemon that has this factory now, where a lease in the database says so. */
  leader?(instance: string): Promise<LeaseHolder | undefined>;
  /** How large it is, with its log where that is a part of it. */
  bytes(): Promise<number>;
  /** Runs `work`, which reads all from one moment. */
  snapshot<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T>;
  /** The last id of each table that never gives one twice, also where its row is gone. */
  lastIds(): Promise<LastIds>;
  /** Lets these tables go on after these ids. */
  setLastIds(db: Kysely<Tables>, ids: LastIds): Promise<void>;
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

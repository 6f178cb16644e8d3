import type { PostgresqlServer } from '../../support/postgresql.ts';

/** How often daemons changed workers, and how often something went from one daemon to another. */
export interface ActCounts {
  readonly acts: number;
  readonly moves: number;
}

/** The three texts by which a database notes who may act, and who does. */
export interface Notes {
  /** Makes triggers that note in the schema `campaign` who changes workers, and who gets what. */
  readonly begin: string;
  /** A row of `ActCounts`. */
  readonly counts: string;
  /** A `what` for each act of a daemon that had no right to it. */
  readonly stray: string;
}

/** The record of who acted for the factory, as the database itself keeps it. */
export class Acts {
  readonly #server: PostgresqlServer;
  readonly #database: string;
  readonly #notes: Notes;

  /** Begins now: the tables of a daemon must be there. `track_commit_timestamp` must be on, since commits order the notes. */
  static async begin(server: PostgresqlServer, database: string, notes: Notes): Promise<Acts> {
    await server.query(`BEGIN; ${notes.begin}; COMMIT`, database);
    return new Acts(server, database, notes);
  }

  private constructor(server: PostgresqlServer, database: string, notes: Notes) {
    this.#server = server;
    this.#database = database;
    this.#notes = notes;
  }

  async counts(): Promise<ActCounts> {
    const [row] = await this.#server.query<ActCounts>(this.#notes.counts, this.#database);
    return row ?? { acts: 0, moves: 0 };
  }

  /** Daemons that acted for what another one had. */
  async broken(): Promise<string[]> {
    const rows = await this.#server.query<{ what: string }>(this.#notes.stray, this.#database);
    return rows.map(({ what }) => what);
  }
}

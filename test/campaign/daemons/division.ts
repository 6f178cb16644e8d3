import type { PostgresqlServer } from '../../support/postgresql.ts';
import type { Acts } from './acts.ts';
import type { Bed } from './bed.ts';
import type { Caps } from './census.ts';
import type { Strike } from './strikes.ts';

/** Daemons on one database, as a campaign strikes them: how they divide the work, and what is judged of that. */
export interface Division {
  /** How many daemons there are. */
  readonly daemons: number;
  readonly caps: Caps;
  /** How long the Pods of each queue run. */
  readonly lives: Readonly<Record<string, string>>;
  /** More options of a queue. */
  readonly options?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Whether all daemons read kubeconfigs and templates at the same paths. */
  readonly sharesFiles: boolean;
  /** Settings of the section `database`, of the daemon with this number. */
  database(index: number): Readonly<Record<string, unknown>>;
  beginActs(server: PostgresqlServer, database: string): Promise<Acts>;
  /** What goes from one daemon to another, in the plural. */
  readonly moves: string;
  strikes(bed: Bed): readonly Strike[];
  /** Share of the rounds that wait until the factory works again; the others strike it while it takes over. */
  readonly awaited: number;
  /** Whether the factory works again, once these queues have new workers. */
  worksAgain(queues: ReadonlySet<string>): boolean;
  /** Whether all daemons have their parts, in the end. */
  isSettled?(bed: Bed): Promise<boolean>;
}

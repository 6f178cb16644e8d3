import type { Log } from '../plugins/contracts/index.ts';
import { type Clock, systemClock } from '../util/clock.ts';
import { systemRandom } from '../util/random.ts';
import { HangUps } from './hang-ups.ts';

/** The parts of the world that every subcommand may use. */
export interface Environment {
  readonly out: NodeJS.WriteStream;
  readonly err: NodeJS.WriteStream;
  readonly clock: Clock;
  readonly random: () => number;
  readonly hangUps: HangUps;
}

export const realEnvironment: Environment = {
  out: process.stdout,
  err: process.stderr,
  clock: systemClock,
  random: systemRandom,
  hangUps: new HangUps(),
};

/** Ends a subcommand that said everything already with this exit status. */
export class ExitStatus extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`exit status ${status}`);
    this.status = status;
  }
}

export interface GlobalOptions {
  /** Undefined: looked for in the usual places. */
  readonly config?: string | undefined;
  readonly stateDir?: string;
}

/** For subcommands whose plugins may log: the standard output is theirs alone. */
export const noLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Processor time of one run each, user and system, s, by the name of the command. */
export type CommandTimes = Readonly<Record<string, readonly number[]>>;

export interface Measured {
  /** The program as it is published: `dist/`, its compiled code kept from an earlier run. */
  readonly published: CommandTimes;
  /** The same commands of a checkout, which runs its sources. */
  readonly checkout: CommandTimes;
  /** Programs beside them. */
  readonly beside: CommandTimes;
  /** From the daemon's exec until the pilot of its first worker runs, s. */
  readonly firstPilot: readonly number[];
  /** The same, for the published program's processor time until then, s. */
  readonly firstPilotProcessor: readonly number[];
}

/** The state of the link to the PanDA server, as the link writes it down for operators. Times are ms UTC. */
export interface PandaLinkStatus {
  /** When it was written: an old one means that the daemon does not run, or hangs. */
  readonly writtenAt: number;
  readonly url: string;
  readonly harvesterId: string;
  readonly startedAt: number;
  /** Why no queue gets workers by the link yet; absent once it is ready. */
  readonly starting?: string;
  /** When the server last answered a call of each kind well; absent calls were never answered. */
  readonly lastAnswers: Readonly<Partial<Record<PandaCallName, number>>>;
  /** The calls that fail now. */
  readonly failures: readonly PandaCallFailure[];
  /** How far the server's clock is ahead of ours, ms; absent while unknown. */
  readonly serverAhead?: number;
  /** The last commands, newest first. */
  readonly commands: readonly CarriedOut[];
  readonly sites: readonly PandaSite[];
  readonly reports: PandaReports;
}

export const pandaCallNames = [
  'heartbeat',
  'worker-id',
  'resource-types',
  'commands',
  'acknowledge',
  'statistics',
  'jobs',
  'worker-statistics',
  'reports',
  'dialogs',
  'metrics',
] as const;
export type PandaCallName = (typeof pandaCallNames)[number];

export interface PandaCallFailure {
  readonly call: PandaCallName;
  readonly since: number;
  /** A code of docs/errors.md. */
  readonly code: string;
  readonly message: string;
}

/** A command of the server, and the outcome. */
export interface CarriedOut {
  readonly at: number;
  readonly id: number;
  readonly command: string;
  readonly outcome: string;
}

/** A site of the server that queues of this daemon serve. */
export interface PandaSite {
  readonly site: string;
  readonly queues: readonly string[];
  /** When statistics of it were last taken by the server. */
  readonly statisticsAt?: number;
  readonly order?: PandaOrder;
  /**
   * Activated jobs of the site, where a queue of it counts them (`runMode: self`), and when they were counted; and the instances that share
   * them, this one among them, where `activateWorkerFactor: auto` asks for these.
   */
  readonly jobs?: { readonly activated: number; readonly at: number; readonly instances?: number };
}

/** The order that counts: the last one. */
export interface PandaOrder {
  readonly createdAt: number;
  readonly takenAt: number;
  /** New workers by resource type, as the server said. */
  readonly said: Readonly<Record<string, number>>;
  /** The same without the workers that the server had not heard of when it made the order. */
  readonly wanted: Readonly<Record<string, number>>;
  /** How many of these have no worker yet. */
  readonly rest: number;
}

export interface PandaReports {
  /** When the server last took a report. */
  readonly lastTaken?: number;
  /** Reports that the server took since the start. */
  readonly taken: number;
  /** Workers that the server refuses one by one. */
  readonly refused: readonly number[];
}

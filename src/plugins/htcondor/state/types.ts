/**
 * The attributes that thresher reads of a job's ClassAd, as `condor_q -json` and `condor_history -json` print it.
 * Anything may be missing. Times are s.
 */
export interface JobAd {
  readonly ClusterId?: number;
  readonly ProcId?: number;
  readonly JobStatus?: number;
  readonly LastJobStatus?: number;
  readonly EnteredCurrentStatus?: number;
  readonly JobStartDate?: number;
  readonly JobCurrentStartDate?: number;
  readonly NumJobStarts?: number;
  readonly CompletionDate?: number;
  readonly ExitCode?: number;
  readonly ExitBySignal?: boolean;
  readonly ExitSignal?: number;
  readonly HoldReason?: string;
  readonly HoldReasonCode?: number;
  readonly HoldReasonSubCode?: number;
  readonly LastHoldReason?: string;
  readonly LastHoldReasonCode?: number;
  readonly LastHoldReasonSubCode?: number;
  /** When all files of a spooled job had come. */
  readonly StageInFinish?: number;
  readonly RemoveReason?: string;
  readonly RemoteHost?: string;
  readonly LastRemoteHost?: string;
  readonly GridJobId?: string;
  readonly GridJobStatus?: string;
}

/** The attributes to ask for (`-attributes`), with the marks by which jobs are found. */
export const jobAttributes: readonly string[] = [
  ...['ClusterId', 'ProcId', 'JobStatus', 'LastJobStatus', 'EnteredCurrentStatus', 'JobStartDate'],
  ...['JobCurrentStartDate', 'NumJobStarts', 'CompletionDate', 'ExitCode', 'ExitBySignal', 'ExitSignal'],
  ...[
    'HoldReason',
    'HoldReasonCode',
    'HoldReasonSubCode',
    'LastHoldReason',
    'LastHoldReasonCode',
    'LastHoldReasonSubCode',
    'RemoveReason',
  ],
  ...['RemoteHost', 'LastRemoteHost', 'GridJobId', 'GridJobStatus', 'StageInFinish'],
  ...['thresherFactory', 'harvesterID', 'harvesterWorkerID'],
];

/**
 * Attributes of a job that expressions of third parties may read beside those of its own lines: HTCondor sets each to a number, a word or a name, or makes it
 * of such. Of all others a template, a machine or a site may have made an expression that reads this one: two such read each other to the limit
 * of HTCondor's recursion, 400 operators each time, and then the negotiator or the schedd ends, at each of its starts. Source: HTCondor's
 * manual, "Job ClassAd Attributes"; 25.14.
 */
export const jobAttributes: readonly string[] = [
  ...['JobStatus', 'LastJobStatus', 'EnteredCurrentStatus', 'JobUniverse', 'JobPrio', 'Owner', 'User'],
  ...['ClusterId', 'ProcId', 'QDate', 'CurrentTime', 'CurrentHosts', 'RemoteHost', 'LastRemoteHost'],
  ...['JobStartDate', 'JobCurrentStartDate', 'JobCurrentStartExecutingDate', 'JobLastStartDate'],
  ...['LastMatchTime', 'LastRejMatchTime', 'LastVacateTime', 'LastSuspensionTime', 'TotalSuspensions'],
  ...['NumJobStarts', 'NumJobMatches', 'NumJobCompletions', 'NumJobReconnects', 'NumShadowStarts'],
  ...['NumShadowExceptions', 'NumHolds', 'NumSystemHolds', 'NumRestarts', 'NumVacates', 'JobRunCount'],
  ...['HoldReasonCode', 'HoldReasonSubCode', 'LastHoldReasonCode', 'LastHoldReasonSubCode'],
  ...['VacateReasonCode', 'ExitCode', 'ExitStatus', 'ExitBySignal', 'ExitSignal'],
  ...['RemoteWallClockTime', 'LastRemoteWallClockTime', 'CumulativeSlotTime', 'CumulativeSuspensionTime'],
  ...['CommittedTime', 'RemoteUserCpu', 'RemoteSysCpu', 'CumulativeRemoteUserCpu', 'CumulativeRemoteSysCpu'],
  ...['CpusUsage', 'MemoryUsage', 'DiskUsage', 'ImageSize', 'ResidentSetSize', 'ProportionalSetSizeKb'],
  ...['CpusProvisioned', 'MemoryProvisioned', 'DiskProvisioned', 'BytesSent', 'BytesRecvd'],
  'TransferInputSizeMB',
];

/**
 * Those of them that stay the same from the match of a job to its start. A startd compares a job with its machine again as the schedd starts it: a job
 * whose memory is another one by then (`JobStatus == 2`) is refused, and the schedd starts it on the same claim again, thirty times a second,
 * while the jobs of others wait. `NumJobStarts` counts once the program begins, behind that comparison; `NumShadowStarts` and `NumJobMatches` count
 * before it. Source: `BaseShadow::resourceBeganExecution`, `add_shadow_birthdate` and `mark_job_running` of HTCondor 23.9 and 25.14
 */
export const steadyAttributes: readonly string[] = [
  ...['MemoryUsage', 'ResidentSetSize', 'ProportionalSetSizeKb', 'ImageSize', 'DiskUsage'],
  ...['TransferInputSizeMB', 'NumJobStarts', 'NumHolds', 'NumSystemHolds'],
  ...['HoldReasonCode', 'HoldReasonSubCode', 'LastHoldReasonCode', 'LastHoldReasonSubCode'],
  ...['ClusterId', 'ProcId', 'QDate', 'Owner', 'User', 'JobUniverse', 'JobPrio'],
];

import type { FinalStatus } from '../../../worker/status.ts';
import type { JobAd } from './types.ts';

/** Decides the fate of a held job's worker. */
export interface HoldRule {
  /** For the table in docs/. Empty: the row before says it. */
  readonly seen: string;
  readonly codes?: readonly number[];
  /** The rule counts only for these; a subcode that is missing is 0. */
  readonly subCodes?: readonly number[];
  readonly reason?: RegExp;
  /**
   * `wait`: until an operator or HTCondor releases it. 0: at once, where it says that the job has ended by itself, also at a CE. Absent: after
   * `heldTimeout`.
   */
  readonly after?: 0 | 'wait';
  readonly status: Extract<FinalStatus, 'failed' | 'cancelled'>;
  readonly code: string;
}

/**
 * Why jobs are held, and when their workers are given up. Order matters: the first match counts.
 * Source: HTCondor's condor_holdcodes.h, 25. HTCondor gives code 0 and a text where it holds a grid job itself: condorjob.cpp, arcjob.cpp and
 * infnbatchjob.cpp of its grid manager, 25; words of batch systems behind ARC: Harvester's worker_errors.py.
 */
export const holdRules: readonly HoldRule[] = [
  {
    seen: 'input is being spooled (16): a job that was submitted with `-spool` begins so',
    codes: [16],
    after: 'wait',
    status: 'cancelled',
    code: 'htcondor-held',
  },
  {
    // HTCondor holds jobs that it takes up again, and their remote parts run on: once this is mended, a release continues them.
    seen: 'reason "Failed to start GAHP": the access point cannot speak to the CE, where the job may run on',
    reason: /^Failed to start GAHP\b/,
    status: 'cancelled',
    code: 'htcondor-ce',
  },
  {
    // A CE or batch system that lost its state for a while says so of all jobs at once: the wait keeps the factory from replacing them all.
    seen: 'reason "Job not found", "Job disappeared from remote schedd" or "Job removed from batch queue manually": the CE no longer shows it; it may run on',
    reason: /^(Job not found|Job disappeared from remote schedd|Job removed from batch queue manually)$/,
    status: 'cancelled',
    code: 'htcondor-ce',
  },
  {
    seen: 'reason "ARC job failed" because it never began ("Job submission to ... failed", "Failed extracting LRMS ID")',
    reason: /^ARC job failed: (Job submission to .* failed|Failed extracting LRMS ID)/s,
    status: 'cancelled',
    code: 'htcondor-ce',
  },
  {
    seen: 'reason "ARC job failed" because its batch system no longer shows it ("Job missing from ...", "Job was lost"); it may run on',
    reason: /^ARC job failed\b.*\bJob (missing from|was lost)\b/s,
    status: 'failed',
    code: 'htcondor-ce',
  },
  {
    seen: 'reason "ARC job failed" by more memory than asked for ("job killed: vmem")',
    reason: /^ARC job failed\b.*\b(p?v?mem|memory)\b/is,
    after: 0,
    status: 'failed',
    code: 'htcondor-memory',
  },
  {
    seen: 'reason "ARC job failed" by its time ("job killed: wall", "cput", "Job timeout")',
    reason: /^ARC job failed\b.*\b(wall ?(time|clock)?|cput|cpu ?time|time ?limit|timeout|h_rt)\b/is,
    after: 0,
    status: 'failed',
    code: 'walltime',
  },
  {
    seen: 'reason "ARC job failed" by anything else, or "Job exit information ...": the CE no longer knows how it ended',
    reason: /^(ARC job failed|Job exit information (is )?(missing|invalid))\b/,
    after: 0,
    status: 'failed',
    code: 'htcondor-ce',
  },
  {
    seen: 'longer than `allowed_job_duration` or `allowed_execute_duration` (46, 47)',
    codes: [46, 47],
    after: 0,
    status: 'failed',
    code: 'walltime',
  },
  {
    seen: 'more disk than asked for (34 or 21, subcode 104)',
    codes: [34, 21],
    subCodes: [104],
    after: 0,
    status: 'failed',
    code: 'htcondor-disk',
  },
  {
    seen: 'more output than `max_transfer_output_mb` (33)',
    codes: [33],
    after: 0,
    status: 'failed',
    code: 'htcondor-output',
  },
  {
    seen: 'more memory than asked for (34 or 21, subcode 102; 34 with none)',
    codes: [34, 21],
    subCodes: [102, 0],
    after: 0,
    status: 'failed',
    code: 'htcondor-memory',
  },
  {
    seen: 'proxy or token (4, or a reason that speaks of one, or of a login that a CE refuses)',
    codes: [4],
    status: 'cancelled',
    code: 'htcondor-credential',
  },
  {
    seen: '',
    reason:
      /\b(proxy|credentials?|scitokens?|(bearer|access|id)[ -]?tokens?|with token)\b|^Failed to initialize GAHP\b|\b(SECMAN:2010|AUTHENTICATE:\d+):/i,
    status: 'cancelled',
    code: 'htcondor-credential',
  },
  {
    seen: 'program or container could not be started (6, 19, 35, 45, 48)',
    codes: [6, 19, 35, 45, 48],
    status: 'cancelled',
    code: 'htcondor-start',
  },
  {
    seen: 'input, initial directory or transfer to the machine (8, 10, 13, 14, 32, or reason "File stage-in failed")',
    codes: [8, 10, 13, 14, 32],
    status: 'cancelled',
    code: 'htcondor-input',
  },
  {
    seen: '',
    reason: /^(File stage-in failed|ARC_JOB_STAGE_IN timed out)\b/,
    status: 'cancelled',
    code: 'htcondor-input',
  },
  {
    seen: 'output, log or transfer back (7, 9, 12, 22, or reason "File stage-out failed")',
    codes: [7, 9, 12, 22],
    status: 'cancelled',
    code: 'htcondor-output',
  },
  {
    seen: '',
    reason:
      /^(File stage-out failed|ARC_JOB_STAGE_OUT timed out|Error receiving files from schedd|Schedd .* didn't send expected files)\b/,
    status: 'cancelled',
    code: 'htcondor-output',
  },
  {
    // A CE that refuses one job refuses the next: the wait is what keeps the factory from sending job after job.
    seen: 'refused by the CE, or it does not answer (2, or reason "CE job in status ... put on hold by SYSTEM_PERIODIC_HOLD", "Error connecting to schedd", "Attempts to submit failed" ...)',
    codes: [2],
    status: 'cancelled',
    code: 'htcondor-ce',
  },
  {
    seen: '',
    reason:
      /^(CE job in status \d+ put on hold by SYSTEM_PERIODIC_HOLD|Error (connecting to|locating) schedd|Remote schedd returned|held remotely with no hold reason|Attempts to submit failed|Unspecified gridmanager error|ARC_\w+ timed out|New job submission is not allowed|Number of submitted jobs would exceed|submission command failed|Forbidden$)/,
    status: 'cancelled',
    code: 'htcondor-ce',
  },
  {
    seen: 'anything else: held by an operator (1), `periodic_hold` (3), the administrator (26) ...',
    status: 'cancelled',
    code: 'htcondor-held',
  },
];

export function holdRuleOf(ad: JobAd): HoldRule | undefined {
  const { HoldReasonCode, HoldReasonSubCode = 0, HoldReason = '' } = ad;
  return holdRules.find(({ codes, subCodes, reason }) => {
    if (codes === undefined) return reason === undefined || reason.test(HoldReason.trim());
    if (HoldReasonCode === undefined || !codes.includes(HoldReasonCode)) return false;
    // A machine's own policy (21) without a subcode may mean anything.
    if (HoldReasonCode === 21 && HoldReasonSubCode === 0) return false;
    return subCodes?.includes(HoldReasonSubCode) ?? true;
  });
}

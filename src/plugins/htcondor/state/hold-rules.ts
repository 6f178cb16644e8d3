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
  /** `wait`: until an operator or HTCondor releases it. A number: after these seconds. Absent: after `heldTimeout`. */
  readonly after?: number | 'wait';
  readonly status: Extract<FinalStatus, 'failed' | 'cancelled'>;
  readonly code: string;
}

/**
 * Why jobs are held, and when their workers are given up. Order matters: the first match counts.
 * Source: HTCondor's condor_holdcodes.h, 25; the two texts are Harvester's TO_KILL_HOLD_REASONS.
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
    seen: 'reason "Job not found" or "Failed to start GAHP": the CE lost it, or cannot be spoken to',
    reason: /^(Job not found|Failed to start GAHP)$/,
    after: 0,
    status: 'cancelled',
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
    seen: 'proxy or token (4, or a reason that speaks of one)',
    codes: [4],
    status: 'cancelled',
    code: 'htcondor-credential',
  },
  {
    seen: '',
    reason: /\b(proxy|credentials?|scitokens?)\b/i,
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
    seen: 'input, initial directory or transfer to the machine (8, 10, 13, 14, 32)',
    codes: [8, 10, 13, 14, 32],
    status: 'cancelled',
    code: 'htcondor-input',
  },
  {
    seen: 'output, log or transfer back (7, 9, 12, 22)',
    codes: [7, 9, 12, 22],
    status: 'cancelled',
    code: 'htcondor-output',
  },
  {
    seen: 'refused or lost by the CE (2)',
    codes: [2],
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

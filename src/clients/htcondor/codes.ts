import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Errors of HTCondor's tools. */
export const htcondorErrors = {
  'condor-no-tool': {
    meaning: 'A command of HTCondor is missing, or the daemon may not execute it.',
    remedy: 'Install HTCondor, or put the directory of its commands on the PATH of the daemon.',
  },
  'condor-schedd-unknown': {
    meaning: 'The collector knows no schedd of this name, or this machine has no schedd.',
    remedy: 'Check `condorSchedd` and `condorPool` against `condor_status -schedd`.',
  },
  'condor-unreachable': {
    meaning: 'The collector or the schedd does not answer, or the connection broke.',
    remedy: 'Check that its daemons run and that no firewall is between; thresher tries again.',
  },
  'condor-auth': {
    meaning:
      'The schedd or collector does not accept the identity of the daemon, or does not let that user do this.',
    remedy:
      'See the message; check the token directory (`condor_token_list`): HTCondor silently skips a file that the user of the daemon does not own.',
  },
  'condor-limit': {
    meaning:
      'The schedd takes no more jobs of this user or of one submit (`MAX_JOBS_PER_OWNER` and the like).',
    remedy: 'Lower `nQueueLimitWorker`, or ask the administrators of the schedd.',
  },
  'condor-refused': {
    meaning: 'The schedd refuses these jobs by a rule of its administrators (`SUBMIT_REQUIREMENT_NAMES`).',
    remedy: 'See the message for the reason, and change the template, or what the request asks for.',
  },
  'condor-disk-full': {
    meaning: 'The disk of the schedd, or of this machine, is full.',
    remedy: 'Free space in the spool of the schedd, or in the directory that the message names.',
  },
  'condor-submit-wrong': {
    meaning: 'HTCondor cannot read the submit description; the message names the line.',
    remedy: 'Fix the template; `condor_submit -dry-run - FILE` shows how HTCondor reads it.',
  },
  'condor-constraint-wrong': {
    meaning: 'HTCondor cannot read an expression that selects jobs.',
    remedy: 'See the message for the expression.',
  },
  'condor-timeout': {
    meaning:
      'A command of HTCondor did not end in time, so thresher killed it; HTCondor may still carry it out.',
    remedy: 'Check whether the schedd hangs; thresher does nothing twice.',
  },
  'condor-given-up': {
    meaning:
      'The daemon abandoned a command of HTCondor before it ended, for instance because the daemon stops.',
    remedy: 'Nothing to do.',
  },
  'condor-no-job': {
    meaning: 'The job is not in the queue of the schedd, or does not run.',
    remedy: 'None needed if thresher was about to remove the job; otherwise it has ended.',
  },
  'condor-not-listed': {
    meaning: 'HTCondor shows a file of a running job only if `transfer_output_files` of the job names it.',
    remedy: 'Name the file there, in the template of the queue.',
  },
  'condor-failed': {
    meaning: 'A command of HTCondor failed for another reason.',
    remedy: 'See its own words in the message.',
  },
  'condor-answer': {
    meaning:
      'thresher cannot read the output of a command of HTCondor, or the output is cut off or larger than thresher keeps. thresher concludes nothing from it.',
    remedy:
      'Run the command of the message by hand as the user of the daemon. Where the answer is too large, see whose jobs or machines they are, and remove what is not needed.',
  },
} as const satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof htcondorErrors> {}
}
